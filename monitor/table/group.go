package table

import (
	"slices"
	"strings"

	"redlockctl/monitor"
)

// groupOf names the lock of which l is one key; empty: l is the whole lock.
func groupOf(l *monitor.Lock) string {
	switch f := l.Form; {
	case f == nil || l.Holder.Empty() || f.Companion:
	case f.SharedToken:
		return l.Holder.Raw()
	case !f.Group.Empty():
		return f.Library + "\x00" + f.Group.Raw() + "\x00" + l.Holder.Raw()
	}
	return ""
}

// publish replaces the published lock of r by next; nil removes it.
func (t *Table) publish(r *record, next *monitor.Lock) {
	old := r.lock
	name := ""
	if next != nil {
		r.lock = next
		name = groupOf(next)
	}
	wasAlone := r.known && (r.group == nil || r.group.crowd)
	if g := r.group; g != nil && g.name != name {
		t.leave(g, r)
	}
	if name != "" && r.group == nil {
		t.join(name, r)
	}
	alone := next != nil && (r.group == nil || r.group.crowd)
	if wasAlone {
		t.counts[old.State]--
		if !alone { // the lock of its group may be shown under another key
			t.locks.Delete(old)
			t.fresh = append(t.fresh, old.Key.Raw())
		}
	}
	switch {
	case next == nil:
		t.fresh = append(t.fresh, old.Key.Raw())
	case alone:
		t.show(next)
	default:
		t.regroup(r.group)
	}
}

// join adds r to a group.
func (t *Table) join(name string, r *record) {
	g := t.groups[name]
	if g == nil {
		g = &group{name: name}
		t.groups[name] = g
	}
	r.group = g
	if g.size++; g.size > groupMost && !g.crowd {
		g.crowd = true
		t.hide(g)
		for _, m := range g.members {
			t.show(m.lock)
		}
		g.members = nil
	}
	if !g.crowd {
		at, _ := slices.BinarySearchFunc(g.members, r, func(a, b *record) int { return strings.Compare(a.key(), b.key()) })
		g.members = slices.Insert(g.members, at, r)
	}
}

// leave removes r from its group.
func (t *Table) leave(g *group, r *record) {
	r.group = nil
	if g.size--; g.size == 0 {
		delete(t.groups, g.name)
	}
	if !g.crowd {
		g.members = slices.DeleteFunc(g.members, func(m *record) bool { return m == r })
		t.regroup(g)
	}
}

// regroup publishes the lock that the members of a group make: the first key, all keys,
// and the state of the most urgent member.
func (t *Table) regroup(g *group) {
	t.hide(g)
	switch len(g.members) {
	case 0:
		return
	case 1:
		g.shown = g.members[0].lock
	default:
		worst := g.members[0].lock
		each := make([]*monitor.Lock, len(g.members))
		for i, m := range g.members {
			each[i] = m.lock
			if worse(m.lock, worst) {
				worst = m.lock
			}
		}
		one := worst.Joined(each...)
		g.shown = &one
	}
	t.show(g.shown)
}

// worse reports whether a key is more urgent than another of its lock, or has a smaller
// margin.
func worse(l, than *monitor.Lock) bool {
	if l.State != than.State {
		return l.State > than.State
	}
	return l.Held < than.Held
}

// hide removes the lock of the group from the view.
func (t *Table) hide(g *group) {
	if g.shown != nil {
		t.counts[g.shown.State]--
		t.locks.Delete(g.shown)
		t.fresh = append(t.fresh, g.shown.Key.Raw())
		g.shown = nil
	}
}

func (t *Table) show(l *monitor.Lock) {
	t.counts[l.State]++
	t.locks.Set(l)
	t.fresh = append(t.fresh, l.Key.Raw())
}
