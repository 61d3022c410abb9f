package page

// Kind is a kind of page.
type Kind uint8

const (
	Overview Kind = iota
	Locks
	Nodes
	Events
	Findings
	Guard
	Lab
	Help
	NumTabs

	Lock     = iota - 1 // one lock
	Node                // one node
	Clusters            // all configured clusters
	Audit               // what people and guards did
)

var viewNames = [...]string{"overview", "locks", "nodes", "events", "findings", "guard", "lab", "help", "lock", "node", "clusters", "audit"}

// String is the view's name: in the line of tabs, and as a command.
func (k Kind) String() string { return viewNames[k] }

// Tab is the number of the tab that the view belongs to.
func (k Kind) Tab() Kind {
	switch k {
	case Lock:
		return Locks
	case Node:
		return Nodes
	case Clusters:
		return Overview
	case Audit:
		return Events
	}
	return k
}

// Place tells pages apart.
type Place struct {
	Kind Kind
	Name string // of Lock: its key; of Node: its name
}

// Mode is which keys are listened to now.
type Mode uint16

const (
	ModeLocks Mode = 1 << iota // a list of locks has the cursor
	ModeNodes                  // a list of nodes has it
	ModeLock                   // one lock
	ModeNode                   // one node
	ModeEvents
	ModeFindings
	modeGuard
	ModeLab
	ModeHelp
	ModeFilter  // a filter is being typed
	ModeCommand // a command is
	ModeDialog  // a dialog asks
	ModeWorking // its act runs
	ModeClusters
	ModeAudit

	ModeOnNode = ModeNodes | ModeNode | modeGuard | ModeLab // a node can be picked
	ModeOnLock = ModeLocks | ModeLock
	ModeList   = ModeLocks | ModeOnNode | ModeEvents | ModeFindings | ModeClusters | ModeAudit
	ModeMain   = ModeList | ModeLock | ModeHelp
	ModeEdit   = ModeFilter | ModeCommand | ModeDialog
	ModeAny    = ModeMain | ModeEdit | ModeWorking
)
