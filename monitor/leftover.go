package monitor

import (
	"slices"

	"redlockctl/redlock"
)

// LeftOver reports whether copy i of l rivals nobody: the lock is held by another token, and this is no
// split, or its copies are all on nodes that refuse writes, and the nodes that are free do not complete
// a majority with them.
func (s *Snapshot) LeftOver(l *Lock, i int) bool {
	one := l.Copies.At(i)
	if one.State != CopyPresent || one.Token.Empty() || one.Token == l.Holder && l.ReliedOn() || l.Contested {
		return false
	}
	if l.State <= LockBareMajority && l.ReliedOn() && !redlock.IsTombstone(one.Token.Raw()) {
		return true
	}
	votes := 0
	for k, other := range l.Copies.All() {
		there := other.State == CopyPresent || other.State == CopyUnknown || other.State == CopyUnread
		closed := k < len(s.Nodes) && (s.Nodes[k].State == NodeFenced || s.Nodes[k].State == NodeCordoned)
		switch {
		case there && other.Token == one.Token && !closed:
			return false
		case there && other.Token == one.Token, !there && !closed:
			votes++
		}
	}
	return votes < redlock.Quorum(l.Copies.Len()) || l.State == LockOrphaned
}

// searched is the greatest number of locks among which [Snapshot.BlockNobody] looks.
const searched = 20_000

// BlockNobody returns how many orphaned locks are known to block nobody, see [Snapshot.BlocksNobody]; 0 if
// there are very many locks, too.
func (s *Snapshot) BlockNobody() (n int) {
	closed := slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.State == NodeFenced || n.State == NodeCordoned })
	if s.Counts[LockOrphaned] == 0 || !closed || s.Locks.Len() > searched {
		return 0
	}
	for l := range s.Locks.All() {
		if s.BlocksNobody(l) {
			n++
		}
	}
	return n
}

// BlocksNobody reports whether all copies of an orphaned lock are left over on nodes that refuse writes:
// they have no vote to give, so nobody is kept out.
func (s *Snapshot) BlocksNobody(l *Lock) bool {
	left := 0
	for i := range l.Copies.Len() {
		switch {
		case s.LeftOver(l, i):
			left++
		case l.Copies.At(i).State == CopyPresent, l.Copies.At(i).State == CopySeen:
			return false
		}
	}
	return l.State == LockOrphaned && left > 0
}
