package index

import (
	"iter"
	"slices"

	"github.com/claimq/claimq/fsm/record"
)

// Types holds the task types that have tasks or settings. Call Reset before the first use.
type Types struct {
	byName   map[string]*Type
	sorted   Map[string, *Type] // byName, sorted
	ready    ranking            // all types; closed ones have no rank in it
	opened   int                // number of open types
	ladder   ladder             // the queues of all open types, except for stale ones
	stale    []*Type            // types whose queues in ladder are out of date, each once
	openings List[opening]      // types and shares that only their rate limit closes
	filling  List[opening]      // shares whose buckets are not full, by when they will be
	bytes    int64              // result of Bytes
	changes  uint64             // grows when a type is added or forgotten
	recent   *Type              // cache: the type of the last task changed, or nil
	noted    []Ready            // what became claimable since TakeNoted
	notedAt  map[string]int     // where forgotten types are in noted
	sources  []source           // memory for Chooser

	undoing   bool // between BeginUndo and EndUndo
	undone    bool // during EndUndo
	unsettled []unsettled
}

// Tasks finds tasks by their ids.
type Tasks interface {
	Get(id uint64) *record.Task
}

// Ready says how many tasks of a type became claimable, at most: the same entry may have
// claimed some again. A type with limits is reported with at least one task by every entry that
// touches it and leaves it claimable, because time alone makes room under a rate limit, without
// an entry.
type Ready struct {
	Type  string
	Count int
}

// Reset removes all types.
func (s *Types) Reset() {
	*s = Types{
		byName: map[string]*Type{}, sorted: NewMap[string, *Type](), ready: newRanking(), openings: newOpenings(), filling: newOpenings(),
		changes: s.changes + 1,
	}
}

// Succeed must be called when these types replace others, so that slots cached for those are
// looked up again.
func (s *Types) Succeed(others *Types) { s.changes += others.changes + 1 }

// Begin adds a new type. of is the caller's own data of it.
func (s *Types) Begin(ts *Type, name string, of any) {
	ts.name, ts.Of, ts.behind, ts.ranking = name, of, NewIDs(), newRanking()
	ts.noted = s.notedAt[name]
	ts.ranking.add(&ts.stock)
	s.byName[name] = ts
	s.sorted.Set(name, ts)
	s.ready.add(ts)
	s.changes++
	s.weigh(ts)
}

// Forget removes a type that has no tasks. The value keeps only its name and the caller's data.
// Tasks that it has just made claimable stay noted.
func (s *Types) Forget(ts *Type) {
	delete(s.byName, ts.name)
	s.sorted.Delete(ts.name)
	s.ready.remove(ts)
	if ts.standing == open {
		s.opened--
	}
	s.removeRungs(ts)
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

// Named returns the type, or nil.
func (s *Types) Named(name string) *Type {
	if ts := s.recent; ts != nil && ts.name == name {
		return ts
	}
	return s.byName[name]
}

// NameOf returns the name as a string. If the type exists, it is the one that its tasks share.
func (s *Types) NameOf(name []byte) string {
	if ts := s.recent; ts != nil && ts.name == string(name) {
		return ts.name
	}
	if ts := s.byName[string(name)]; ts != nil {
		return ts.name
	}
	return string(name)
}

// ShareKeyOf returns the key as a string. If the type has the share, it is the share's own.
func (s *Types) ShareKeyOf(taskType string, key []byte) string {
	if ts := s.Named(taskType); ts != nil && ts.shares != nil {
		if sh := ts.shares.recent; sh != nil && sh.key == string(key) {
			return sh.key
		}
		if sh := ts.shares.byName[string(key)]; sh != nil {
			return sh.key
		}
	}
	return string(key)
}

// Len returns the number of types.
func (s *Types) Len() int { return len(s.byName) }

// From yields the types in order of their names, starting at name.
func (s *Types) From(name string) iter.Seq[*Type] {
	return func(yield func(*Type) bool) {
		s.sorted.Ascend(name, func(_ string, ts *Type) bool { return yield(ts) })
	}
}

// Oldest returns the id of the oldest pending task of all types, or 0.
func (s *Types) Oldest() (id uint64) {
	s.sorted.Scan(func(_ string, ts *Type) bool {
		if ts.oldest != 0 && (id == 0 || ts.oldest < id) {
			id = ts.oldest
		}
		return true
	})
	return id
}

// Bytes estimates the memory of types, groups and shares. The queues' places of tasks are part of the
// tasks' estimates.
func (s *Types) Bytes() int64 { return s.bytes }

// weigh updates Bytes after the type has changed.
func (s *Types) weigh(ts *Type) {
	bytes := record.BytesOfType(ts.name, len(ts.queues), ts.levels)
	if ts.shares != nil {
		bytes += ts.shares.bytes
	}
	if ts.turns != nil {
		bytes += int64(ts.turns.count) * record.FairBytes
	}
	s.bytes += bytes - ts.bytes
	ts.bytes = bytes
}

// Enter adds a task in its current status.
func (s *Types) Enter(ts *Type, t *record.Task) {
	if t.Status == record.StatusClaimed {
		ts.hold(t, 1)
	}
	switch group := record.GroupOf(t); {
	case group != "":
		s.enterGroup(ts, t)
	case t.Status == record.StatusPending:
		ts.add(t)
	}
}

// Leave undoes Enter; call it before the task changes or goes. It also makes the task's type
// the cached one.
func (s *Types) Leave(ts *Type, t *record.Task) {
	s.recent = ts
	if t.Status == record.StatusClaimed {
		ts.hold(t, -1)
	}
	switch group := record.GroupOf(t); {
	case group != "":
		s.leaveGroup(ts, t)
	case t.Status == record.StatusPending:
		ts.remove(t)
	}
}

// Arrange updates the task's group, share and type after a change, at time now by T. It must end every
// change of a task, because Leave alone leaves the view of claims incomplete.
func (s *Types) Arrange(ts *Type, t *record.Task, tasks Tasks, saved Turns, now int64) {
	if t.Options != nil && t.Options.Group != "" {
		s.arrangeGroup(ts, t.Options.Group, tasks)
	}
	s.settle(ts, saved, now)
	s.place(ts, now)
}

// Noted returns what became claimable since TakeNoted, each type once, in order.
func (s *Types) Noted() []Ready { return slices.Clone(s.noted) }

// TakeNoted returns what Noted does and clears it.
func (s *Types) TakeNoted() []Ready {
	noted := s.noted
	s.noted, s.notedAt = nil, nil
	return noted
}

// PutNoted restores what Noted returned earlier, undoing what was noted since.
func (s *Types) PutNoted(noted []Ready) { s.noted = noted }

// isNoted reports whether the type is in noted.
func (s *Types) isNoted(ts *Type) bool {
	return ts.noted < len(s.noted) && s.noted[ts.noted].Type == ts.name
}
