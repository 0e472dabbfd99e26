package fsm

import (
	"github.com/tidwall/btree"

	"github.com/claimq/claimq/fsm/record"
)

// group is the tasks of one type and group that have not ended. They are
// claimed one at a time, in order of submission: the head, the oldest of them,
// is claimable if it is pending and none of the group is claimed.
type group struct {
	ids     btree.Set[uint64]
	claimed int
	holder  uint64 // id of the task that is claimed, while one is
	// ready is the id of its task that is in a queue of the type, 0 if none is.
	ready uint64
}

// enterGroup adds a task that has not ended to its group.
func (m *derived) enterGroup(ts *typeState, t *record.Task) {
	name := t.Options.Group
	g := ts.groups[name]
	if g == nil {
		if ts.groups == nil {
			ts.groups = map[string]*group{}
		}
		g = &group{}
		ts.groups[name] = g
		m.bytes += record.BytesOfGroup(name)
	}
	g.ids.Insert(t.ID)
	switch t.Status {
	case record.StatusClaimed:
		g.claimed++
		g.holder = t.ID
	case record.StatusPending:
		ts.behind.Insert(t.ID)
	}
}

// leaveGroup undoes enterGroup. Until follow is called, the group may have no
// task, and none is claimable that was not.
func (m *Machine) leaveGroup(ts *typeState, t *record.Task) {
	g := ts.groups[t.Options.Group]
	g.ids.Delete(t.ID)
	switch {
	case t.Status == record.StatusClaimed:
		g.claimed--
	case g.ready == t.ID:
		ts.remove(t)
		g.ready = 0
	case t.Status == record.StatusPending:
		ts.behind.Delete(t.ID)
	}
}

// follow lets the group's head be claimable, if it is, and no other.
func (m *Machine) follow(ts *typeState, name string) {
	g := ts.groups[name]
	if g == nil {
		return
	}
	head, ok := g.ids.Min()
	if !ok {
		delete(ts.groups, name)
		m.bytes -= record.BytesOfGroup(name)
		return
	}
	if g.claimed > 0 || m.Get(head).Status != record.StatusPending {
		head = 0
	}
	if head == g.ready {
		return
	}
	if g.ready != 0 {
		ts.remove(m.Get(g.ready))
		ts.behind.Insert(g.ready)
	}
	if head != 0 {
		ts.behind.Delete(head)
		ts.add(m.Get(head))
	}
	g.ready = head
}

// leads reports whether the group of the pending task, if it has one, lets it
// be claimed.
func (m *derived) leads(t *record.Task) bool {
	name := record.GroupOf(t)
	return name == "" || m.types[t.Type].groups[name].ready == t.ID
}
