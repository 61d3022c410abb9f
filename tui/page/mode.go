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
	Audit               // the audit log
)

var viewNames = [...]string{"overview", "locks", "nodes", "events", "findings", "guard", "lab", "help", "lock", "node", "clusters", "audit"}

// String returns the name of the page, for tabs and commands.
func (k Kind) String() string { return viewNames[k] }

// Tab returns the number of the page's tab.
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

// Place identifies a page.
type Place struct {
	Kind Kind
	Name string // of Lock: its key; of Node: its name
}

// Mode decides which keys are active.
type Mode uint16

const (
	ModeLocks Mode = 1 << iota // a list of locks has the cursor
	ModeNodes                  // a list of nodes has the cursor
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
	ModeWorking // its action runs
	ModeClusters
	ModeAudit

	ModeOnNode = ModeNodes | ModeNode | modeGuard | ModeLab // a node can be picked
	ModeOnLock = ModeLocks | ModeLock
	ModeList   = ModeLocks | ModeOnNode | ModeEvents | ModeFindings | ModeClusters | ModeAudit
	ModeMain   = ModeList | ModeLock | ModeHelp
	ModeEdit   = ModeFilter | ModeCommand | ModeDialog
	ModeAny    = ModeMain | ModeEdit | ModeWorking
)
