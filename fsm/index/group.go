package index

import (
	"slices"

	"github.com/claimq/claimq/fsm/record"
)

// group holds the tasks of one type and group that have not ended. They are claimed one at
// a time in order of submission: only the head, the oldest one, is claimable, and only if
// it is pending and no task of the group is claimed. A claim of a run takes those behind
// the head together with it.
type group struct {
	ids  IDs
	held []uint64 // ids of the claimed tasks
	// ready is the id of the group's task that is in a queue of the type, or 0.
	ready uint64
}

// enterGroup adds a task that has not ended to its group.
func (s *Types) enterGroup(ts *Type, t *record.Task) {
	name := t.Options.Group
	g := ts.groups[name]
	if g == nil {
		if ts.groups == nil {
			ts.groups = map[string]*group{}
		}
		g = &group{ids: NewIDs()}
		ts.groups[name] = g
		s.bytes += record.BytesOfGroup(name)
	}
	g.ids.Insert(t.ID)
	switch t.Status {
	case record.StatusClaimed:
		g.held = append(g.held, t.ID)
	case record.StatusPending:
		ts.behind.Insert(t.ID)
	}
}

// leaveGroup undoes enterGroup. Until arrangeGroup is called, the group may be empty and makes no
// other task claimable.
func (s *Types) leaveGroup(ts *Type, t *record.Task) {
	g := ts.groups[t.Options.Group]
	g.ids.Delete(t.ID)
	switch {
	case t.Status == record.StatusClaimed:
		at := slices.Index(g.held, t.ID)
		g.held = slices.Delete(g.held, at, at+1)
	case g.ready == t.ID:
		ts.remove(t)
		g.ready = 0
	case t.Status == record.StatusPending:
		ts.behind.Delete(t.ID)
	}
}

// arrangeGroup makes the group's head claimable if it may be claimed, and no other task of the
// group. It forgets an empty group.
func (s *Types) arrangeGroup(ts *Type, name string, tasks Tasks) {
	g := ts.groups[name]
	if g == nil {
		return
	}
	head, ok := g.ids.Min()
	if !ok {
		delete(ts.groups, name)
		s.bytes -= record.BytesOfGroup(name)
		return
	}
	if len(g.held) > 0 || tasks.Get(head).Status != record.StatusPending {
		head = 0
	}
	if head == g.ready {
		return
	}
	if g.ready != 0 {
		ts.remove(tasks.Get(g.ready))
		ts.behind.Insert(g.ready)
	}
	if head != 0 {
		ts.behind.Delete(head)
		ts.add(tasks.Get(head))
	}
	g.ready = head
}

// Leads reports whether the task's group, if it has one, allows the pending task to be
// claimed.
func (ts *Type) Leads(t *record.Task) bool {
	name := record.GroupOf(t)
	return name == "" || ts.groups[name].ready == t.ID
}

// InGroup returns the id of the i-th task, from 0, of a group, or 0.
func (ts *Type) InGroup(name string, i int) uint64 {
	id, _ := ts.groups[name].ids.GetAt(i)
	return id
}

// BehindWhom returns the id of the task in the same group that must end first before this
// unclaimed task can be claimed, or 0. For a blocked step, which is not in its group yet,
// it answers as if the step were unblocked now.
func (ts *Type) BehindWhom(t *record.Task) uint64 {
	name := t.Opts().Group
	if name == "" {
		return 0
	}
	g := ts.groups[name]
	if g == nil {
		return 0
	}
	if len(g.held) > 0 {
		return slices.Min(g.held)
	}
	if head, _ := g.ids.Min(); head < t.ID {
		return head
	}
	return 0
}
