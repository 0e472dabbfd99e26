package claimable

import (
	"iter"
	"slices"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/sorted"
)

// Types are the task types that have tasks or settings, and what of them can be claimed
// next. Reset makes them empty before their first use.
type Types struct {
	byName   map[string]*Type
	sorted   sorted.Map[string, *Type] // the same
	ready    index.Tournament          // all of them; those that cannot be claimed from have no rank in it
	ladder   index.Ladder              // the queues of all open types, but for what is stale
	stale    []*Type                   // types that are not in ladder as they are, each once
	openings sorted.List[opening]      // types that only their rate limit closes
	bytes    int64                     // what Bytes returns
	changes  uint64                    // how often a type began or was forgotten; never goes back
	recent   *Type                     // of the task that changed last or changes next, nil if unknown; found without its name
	noted    []Ready                   // what became claimable since TakeNoted
	notedAt  map[string]int            // of types that were forgotten since: where they are in noted
	sources  []source                  // memory of Chooser
}

// Tasks is where tasks are found by their ids.
type Tasks interface {
	Get(id uint64) *record.Task
}

// Ready says how many tasks of a type became claimable, at most: some may
// have been claimed again by the same entry. A type with limits is named with
// one at least by every entry that leaves it claimable after touching it: the
// room that time makes comes without an entry of its own.
type Ready struct {
	Type  string
	Count int
}

// Reset forgets all types.
func (s *Types) Reset() {
	*s = Types{
		byName: map[string]*Type{}, sorted: sorted.NewMap[string, *Type](), ready: index.NewLazyTournament(), openings: newOpenings(),
		changes: s.changes + 1,
	}
}

// Succeed is called when these types take the place of others: what was found by name
// among those is to be found again.
func (s *Types) Succeed(others *Types) { s.changes += others.changes + 1 }

// Begin begins the type, which is not there yet. What is kept of it beside is of.
func (s *Types) Begin(ts *Type, name string, of any) {
	ts.name, ts.Of, ts.behind, ts.first = name, of, sorted.NewIDs(), index.NewTournament()
	ts.seat.Of = ts
	ts.noted = s.notedAt[name]
	s.byName[name] = ts
	s.sorted.Set(name, ts)
	s.ready.Add(&ts.seat)
	s.changes++
	s.weigh(ts)
}

// Forget forgets a type that has no tasks, all but its name and what is kept of it beside. What
// it has just had to claim stays noted.
func (s *Types) Forget(ts *Type) {
	delete(s.byName, ts.name)
	s.sorted.Delete(ts.name)
	s.ready.Remove(&ts.seat)
	s.fall(ts)
	s.bytes -= ts.bytes
	s.changes++
	s.recent = nil
	if s.isNoted(ts) {
		if s.notedAt == nil {
			s.notedAt = map[string]int{}
		}
		s.notedAt[ts.name] = ts.noted
	}
	*ts = Type{Of: ts.Of, name: ts.name}
}

// Named returns the type, nil if there is none of that name.
func (s *Types) Named(name string) *Type {
	if ts := s.recent; ts != nil && ts.name == name {
		return ts
	}
	return s.byName[name]
}

// NameOf returns the type's name, the string that all its tasks share if there are any.
func (s *Types) NameOf(name []byte) string {
	if ts := s.recent; ts != nil && ts.name == string(name) {
		return ts.name
	}
	if ts := s.byName[string(name)]; ts != nil {
		return ts.name
	}
	return string(name)
}

// Len returns how many types there are.
func (s *Types) Len() int { return len(s.byName) }

// From yields the types by name, from the first one whose name is not below that one.
func (s *Types) From(name string) iter.Seq[*Type] {
	return func(yield func(*Type) bool) {
		s.sorted.Ascend(name, func(_ string, ts *Type) bool { return yield(ts) })
	}
}

// Oldest returns the id of the pending task that was submitted first, 0 if none is pending.
func (s *Types) Oldest() (id uint64) {
	s.sorted.Scan(func(_ string, ts *Type) bool {
		if ts.oldest != 0 && (id == 0 || ts.oldest < id) {
			id = ts.oldest
		}
		return true
	})
	return id
}

// Bytes estimates the memory of types and groups. Tasks are charged with their places there.
func (s *Types) Bytes() int64 { return s.bytes }

// weigh has Bytes follow what the type is now.
func (s *Types) weigh(ts *Type) {
	bytes := record.BytesOfType(ts.name, len(ts.queues), ts.levels)
	s.bytes += bytes - ts.bytes
	ts.bytes = bytes
}

// Enter adds a task that has just come to be what it is.
func (s *Types) Enter(ts *Type, t *record.Task) {
	if t.Status == record.StatusClaimed {
		ts.claimed++
	}
	switch group := record.GroupOf(t); {
	case group != "":
		s.enterGroup(ts, t)
	case t.Status == record.StatusPending:
		ts.add(t)
	}
}

// Leave undoes Enter, before the task changes or goes. Then its type is the one that is
// found without its name.
func (s *Types) Leave(ts *Type, t *record.Task) {
	s.recent = ts
	if t.Status == record.StatusClaimed {
		ts.claimed--
	}
	switch group := record.GroupOf(t); {
	case group != "":
		s.leaveGroup(ts, t)
	case t.Status == record.StatusPending:
		ts.remove(t)
	}
}

// Arrange lets the rest of the task's group and its type follow the change, at now by T. It
// ends every change of a task: after Leave alone, claims do not see the state as it is.
func (s *Types) Arrange(ts *Type, t *record.Task, tasks Tasks, now int64) {
	if t.Options != nil && t.Options.Group != "" {
		s.follow(ts, t.Options.Group, tasks)
	}
	s.place(ts, now)
}

// Noted returns what became claimable since TakeNoted, each type once, in the order in
// which they did.
func (s *Types) Noted() []Ready { return slices.Clone(s.noted) }

// TakeNoted is Noted, and forgets it.
func (s *Types) TakeNoted() []Ready {
	noted := s.noted
	s.noted, s.notedAt = nil, nil
	return noted
}

// PutNoted undoes what was noted since Noted returned that.
func (s *Types) PutNoted(noted []Ready) { s.noted = noted }

// isNoted reports whether the type is in noted.
func (s *Types) isNoted(ts *Type) bool {
	return ts.noted < len(s.noted) && s.noted[ts.noted].Type == ts.name
}
