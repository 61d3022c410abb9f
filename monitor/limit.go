package monitor

// Limit is something that cannot be seen of a node, and what to do about it. Without
// advice it is a note, not a finding.
type Limit struct{ Text, Do string }

// AdviceRights is the advice if this program's user may not read something.
const AdviceRights = "Give this user the rights that redlockctl config acl --role observer prints."
