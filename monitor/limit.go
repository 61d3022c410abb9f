package monitor

// Limit is something that is not seen of a node, and what to do about that; without
// that it is a note, and no finding.
type Limit struct{ Text, Do string }

// AdviceRights is what to do where this program's user may not look.
const AdviceRights = "Give this user the rights that redlockctl config acl --role observer prints."
