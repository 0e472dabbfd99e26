package fsm

import "github.com/tidwall/btree"

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

// groupOf returns the group that the task is held back by as long as it has
// not ended, "" if none. A blocked step has no part in it yet.
func groupOf(t *Task) string {
	if t.Options == nil || t.Status.Ended() {
		return ""
	}
	if t.Status == StatusBlocked {
		return ""
	}
	return t.Options.Group
}

// enterGroup adds a task that has not ended to its group.
func (m *derived) enterGroup(ts *typeState, t *Task) {
	name := t.Options.Group
	g := ts.groups[name]
	if g == nil {
		if ts.groups == nil {
			ts.groups = map[string]*group{}
		}
		g = &group{}
		ts.groups[name] = g
		m.bytes += bytesOfGroup(name)
	}
	g.ids.Insert(t.ID)
	switch t.Status {
	case StatusClaimed:
		g.claimed++
		g.holder = t.ID
	case StatusPending:
		ts.behind.Insert(t.ID)
	}
}

// bytesOfGroup estimates the memory that a group takes beside its tasks.
func bytesOfGroup(name string) int64 { return groupBytes + int64(len(name)) }

// leaveGroup undoes enterGroup. Until follow is called, the group may have no
// task, and none is claimable that was not.
func (m *Machine) leaveGroup(ts *typeState, t *Task) {
	g := ts.groups[t.Options.Group]
	g.ids.Delete(t.ID)
	switch {
	case t.Status == StatusClaimed:
		g.claimed--
	case g.ready == t.ID:
		ts.remove(t)
		g.ready = 0
	case t.Status == StatusPending:
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
		m.bytes -= bytesOfGroup(name)
		return
	}
	if g.claimed > 0 || m.tasks.Get(head).Status != StatusPending {
		head = 0
	}
	if head == g.ready {
		return
	}
	if g.ready != 0 {
		ts.remove(m.tasks.Get(g.ready))
		ts.behind.Insert(g.ready)
	}
	if head != 0 {
		ts.behind.Delete(head)
		ts.add(m.tasks.Get(head))
	}
	g.ready = head
}

// leads reports whether the group of the pending task, if it has one, lets it
// be claimed.
func (m *derived) leads(t *Task) bool {
	name := groupOf(t)
	return name == "" || m.types[t.Type].groups[name].ready == t.ID
}
