package tui

// pageKind is a kind of page.
type pageKind uint8

const (
	viewOverview pageKind = iota
	viewLocks
	viewNodes
	viewEvents
	viewFindings
	viewGuard
	viewLab
	viewHelp
	numTabs

	viewLock = iota - 1 // one lock
	viewNode            // one node
)

var viewNames = [...]string{"overview", "locks", "nodes", "events", "findings", "guard", "lab", "help", "lock", "node"}

// String is the view's name: in the line of tabs, and as a command.
func (v pageKind) String() string { return viewNames[v] }

// tab is the number of the tab that the view belongs to.
func (v pageKind) tab() pageKind {
	switch v {
	case viewLock:
		return viewLocks
	case viewNode:
		return viewNodes
	}
	return v
}

// place tells pages apart.
type place struct {
	kind pageKind
	name string // of viewLock: its key; of viewNode: its name
}

// mode is which keys are listened to now.
type mode uint16

const (
	modeLocks mode = 1 << iota // a list of locks has the cursor
	modeNodes                  // a list of nodes has it
	modeLock                   // one lock
	modeNode                   // one node
	modeEvents
	modeFindings
	modeGuard
	modeLab
	modeHelp
	modeFilter  // a filter is being typed
	modeCommand // a command is
	modeDialog  // a dialog asks
	modeWorking // its act runs
	modeResult  // it tells how the act ended

	modeOnNode = modeNodes | modeNode | modeGuard | modeLab // a node can be picked
	modeOnLock = modeLocks | modeLock
	modeList   = modeLocks | modeOnNode | modeEvents | modeFindings
	modeMain   = modeList | modeLock | modeHelp
	modeEdit   = modeFilter | modeCommand | modeDialog
	modeAny    = modeMain | modeEdit | modeWorking | modeResult
)
