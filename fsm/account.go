package fsm

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm/record"
)

// bytesOfGaps estimates the memory of pages without tasks. Each task is charged for its own
// place, but a page with a single task still takes its full size. The estimate depends only
// on the ids, so it is the same on all nodes.
func bytesOfGaps(tasks *record.Table[record.Task]) int64 {
	return int64(tasks.Gaps()) * record.PlaceBytes
}

// Bytes estimates the memory that the state holds.
func (m *Machine) Bytes() int64 {
	return m.bytes + m.RememberedBytes() + m.schedules.bytes + m.types.Bytes() + m.turns.bytes() + m.shares.bytes() + m.trail.Bytes() + m.histories.bytes + bytesOfGaps(&m.tasks)
}

// RememberedBytes estimates the memory of remembered removed tasks and claim requests.
func (m *Machine) RememberedBytes() int64 { return m.requests.bytes + m.gone.bytes }

// EndedBytes estimates the memory that the ended tasks hold.
func (m *Machine) EndedBytes() int64 { return m.ends.bytes + m.parents.endedBytes }

// edit returns the task for writing and takes it out of the indexes. The task must exist.
// Every edit must be followed by one call of edited after the last change; until then no
// other task may be read or changed.
func (m *Machine) edit(id uint64) *record.Task {
	t := m.tasks.Edit(id)
	m.change(t)
	return t
}

// change does the work of edit for a task that the table has already returned for writing.
func (m *Machine) change(t *record.Task) {
	m.changed++
	m.leave(t)
	t.UpdatedAt = m.header.Stamp.T
}

// edited ends an edit and puts the task back into the indexes.
func (m *Machine) edited(t *record.Task) {
	m.enter(t)
	m.tasks.Rest(t.ID)
}

// enter adds a task to the counts and to the index of its status. Keys and live claims are
// not entered here, but where they are given.
func (m *Machine) enter(t *record.Task) {
	ts := m.types.named(t.Type)
	ts.counts[t.Status]++
	m.counts[t.Status]++
	bytes := record.HeldBytes(t)
	m.bytes += bytes
	if t.Status.Ended() {
		m.ends.enter(t, bytes)
	} else {
		m.times.enter(t)
	}
	if t.Options != nil {
		m.parents.enter(t, t.Options, bytes)
	}
	m.types.Enter(&ts.Type, t)
	m.types.Arrange(&ts.Type, t, m, &m.turns, m.Stamp().T)
}

// leave undoes enter.
func (m *Machine) leave(t *record.Task) {
	ts := m.types.named(t.Type)
	ts.counts[t.Status]--
	m.counts[t.Status]--
	bytes := record.HeldBytes(t)
	m.bytes -= bytes
	if t.Status.Ended() {
		m.ends.leave(t, bytes)
	} else {
		m.times.leave(t)
	}
	if t.Options != nil {
		m.parents.leave(t, t.Options, bytes)
	}
	m.types.Leave(&ts.Type, t)
}

// grown adds the bytes that an indexed task has gained since enter to the counts.
func (m *Machine) grown(t *record.Task, bytes int64) {
	m.bytes += bytes
	switch s := t.Step(); {
	case s != nil:
		m.parents.grown(s, bytes)
	case t.Status.Ended():
		m.ends.bytes += bytes
	}
}

// include adds a task to everything derived except the index of claims. It returns the
// task's type.
func (m *Machine) include(t *record.Task) *typeState {
	ts := m.typeOf(t.Type)
	t.Type = ts.Name() // all tasks of the type share one string
	ts.tasks++
	if m.hasKey(t) {
		m.addKey(t)
	}
	m.parents.join(t)
	m.enter(t)
	return ts
}

// exclude removes an ended task from everything derived.
func (m *Machine) exclude(t *record.Task) {
	m.leave(t)
	ts := m.types.named(t.Type)
	ts.tasks--
	m.types.Arrange(&ts.Type, t, m, &m.turns, m.Stamp().T)
	m.parents.quit(t)
	m.dropType(ts)
	if record.HoldsKey(t) {
		m.keys.Remove(t.KeyName(), t.ID)
	}
}

// typeOf returns the type, and creates it if needed.
func (m *Machine) typeOf(name string) *typeState {
	ts := m.types.named(name)
	if ts == nil {
		// A retired type without rates is no longer visible, so its counters restart from 0.
		if ts = m.types.retired.take(name); ts == nil || ts.rates.none(m.Stamp().T) {
			ts = &typeState{}
		}
		m.types.Begin(&ts.Type, name, ts)
		ts.history = m.histories.of(name)
	}
	return ts
}

// dropType removes a type that has neither tasks nor settings, of its own or of its shares. As
// long as it has rates it is kept among the retired types.
func (m *Machine) dropType(ts *typeState) {
	if ts.tasks > 0 || ts.Record() != nil || ts.HasSaved() {
		return
	}
	if m.undo != nil {
		m.undo.dropped = append(m.undo.dropped, ts)
	}
	m.types.Forget(&ts.Type)
	if !ts.rates.none(m.Stamp().T) {
		m.types.retired.add(ts)
	}
}

// takeBack undoes a count that was made in the same entry.
func takeBack(m *Machine, c counted) {
	c.rates.takeBack(c.kind)
	m.rates.takeBack(c.kind)
	*counterOf(m.histories.total(), c.kind)--
	if c.of != nil {
		*counterOf(c.of, c.kind)--
	}
}

// count counts an event of a task of the type.
func (m *Machine) count(ts *typeState, kind rateKind) {
	ts.rates.add(kind, m.Stamp().T)
	m.rates.add(kind, m.Stamp().T)
	*counterOf(m.histories.total(), kind)++
	if ts.history == nil && ts.Name() != "" {
		ts.history = m.histories.begin(ts.Name())
	}
	if ts.history != nil {
		*counterOf(ts.history, kind)++
	}
	if m.undo != nil {
		m.undo.counted = append(m.undo.counted, counted{&ts.rates, ts.history, kind})
	}
}

// takeBackTime undoes the counting of a duration in the same entry.
func takeBackTime(m *Machine, t timed) {
	timesOf(m.histories.total(), t.span).Remove(t.ms)
	if t.of != nil {
		timesOf(t.of, t.span).Remove(t.ms)
	}
}

// time counts a duration of a task of the type.
func (m *Machine) time(ts *typeState, span Span, ms int64) {
	timesOf(m.histories.total(), span).Add(ms)
	if ts.history != nil {
		timesOf(ts.history, span).Add(ms)
	}
	if m.undo != nil {
		m.undo.timed = append(m.undo.timed, timed{ts.history, span, ms})
	}
}

// endOf returns the minute under way of a history as it would be if it ended now.
func endOf(m *Machine, s *record.History) record.Minute {
	counts, oldest := &m.counts, m.types.Oldest()
	if s.Type != "" {
		counts, oldest = &[record.StatusCancelled + 1]int64{}, 0
		if ts := m.types.named(s.Type); ts != nil {
			counts, oldest = &ts.counts, ts.Oldest()
		}
	}
	at := int64(0)
	if oldest != 0 {
		at = m.Get(oldest).CreatedAt
	}
	return endedMinute(s, counts, at)
}

// passMinutes begins another minute in all histories if the calendar has left the one under way.
// It comes before anything that the entry changes. The history of a type without tasks and
// settings is dropped once it has no minute with a change any more.
func passMinutes(m *Machine) {
	h, now := &m.histories, m.Stamp().T/record.MSInMinute
	if now <= h.minute {
		return
	}
	h.minute, h.bytes = now, 0
	kept := h.all[:0]
	for _, s := range h.all {
		passMinute(s, endOf(m, s), now)
		if s.Type != "" && m.types.named(s.Type) == nil && lastMinute(s).At <= now-record.HistoryMinutes {
			delete(h.byType, s.Type)
			continue
		}
		kept = append(kept, s)
		h.bytes += record.BytesOfHistory(s)
	}
	clear(h.all[len(kept):])
	h.all = kept
}

// rebuildRest computes everything that is derived of the records of a snapshot, except of tasks,
// which must be in it already. Errors: ErrCorrupt, wrapped, if records contradict each other.
func (m *Machine) rebuildRest() error {
	for number := range m.shares.table.All() {
		if problem := m.indexShare(number); problem != "" {
			return contradiction(record.KindShare, number, problem)
		}
	}
	for _, r := range m.types.settings {
		m.types.SetRecord(&m.typeOf(r.Name).Type, r, &m.turns, m.Stamp().T)
	}
	for number := range m.turns.table.All() {
		if problem := m.indexTurn(number); problem != "" {
			return contradiction(record.KindTurn, number, problem)
		}
	}
	for _, r := range m.types.settings {
		if problem := m.types.named(r.Name).ProblemOfTurns(); problem != "" {
			return fmt.Errorf("task type %q: %s: %w", r.Name, problem, ErrCorrupt)
		}
	}
	for seq, r := range m.requests.table.All() {
		if problem := m.requests.index(seq, r, m.header.NextRequest, &m.claims); problem != "" {
			return contradiction(record.KindRequest, seq, problem)
		}
	}
	for id, g := range m.gone.table.All() {
		if problem := m.indexGone(id, g); problem != "" {
			return contradiction(record.KindGone, id, problem)
		}
	}
	for _, v := range m.schedules.all {
		m.schedules.include(v)
	}
	m.types.findMoving()
	if problem := m.trail.Index(trailLimits(m)); problem != "" {
		return fmt.Errorf("trail: %s: %w", problem, ErrCorrupt)
	}
	for ts := range m.types.from("") {
		ts.history = m.histories.of(ts.Name())
	}
	m.types.TakeNoted() // no claim waited for what was there
	return nil
}

// hasKey reports whether the task keeps its key taken now.
func (m *Machine) hasKey(t *record.Task) bool {
	return record.HoldsKey(t) && !windowOver(t.KeyUntil(), m.Stamp().T)
}

// addKey adds the task's key to the index, in place of one that has become free by time.
func (m *Machine) addKey(t *record.Task) {
	name := t.KeyName()
	if m.windows {
		if former := m.keyed(name); former != nil {
			m.keys.Remove(name, former.ID)
		}
	}
	m.keys.Add(name, t.ID)
	m.keysOfTypes = m.keysOfTypes || t.Opts().KeyOfType
	m.windows = m.windows || t.Opts().UniqueMS != 0
}

// byKeyName returns the task whose key has this name in the indexes, or nil.
func (m *Machine) byKeyName(name string) *record.Task {
	t := m.keyed(name)
	if t == nil || windowOver(t.KeyUntil(), m.Stamp().T) {
		return nil
	}
	return t
}

// keyed is byKeyName, but its key may have become free by time.
func (m *Machine) keyed(name string) (t *record.Task) {
	id := m.keys.Get(name, func(id uint64) bool {
		t = m.Get(id)
		return t.KeyName() == name
	})
	if id == 0 {
		return nil
	}
	return t
}

// indexTask adds a saved task to everything derived. It returns what is wrong with the
// task, or "".
func (m *Machine) indexTask(id uint64, t *record.Task) (problem string) {
	switch {
	case t.ID != id || id == 0 || id >= m.header.NextID:
		return "it has another id than its place, or one that was never given out"
	case t.Status == 0 || t.Status > record.StatusCancelled:
		return "it has no known status"
	case t.Token >= m.header.NextToken:
		return "its token was never given out"
	case t.Status == record.StatusClaimed && t.Token == 0:
		return "it is claimed without a token"
	case slices.ContainsFunc(t.Log, func(a record.Attempt) bool { return a.Outcome == record.OutcomeNone }):
		return "its log has a claim that has not ended"
	}
	if problem := attachSteps(m, t); problem != "" {
		return problem
	}
	if m.hasKey(t) && m.byKeyName(t.KeyName()) != nil {
		return "its key is another's"
	}
	if t.Status == record.StatusClaimed {
		if _, twice := m.claims.byToken[t.Token]; twice {
			return "its token is another's"
		}
	}
	ts := m.include(t)
	if t.Status == record.StatusClaimed {
		m.claims.hold(t, &ts.held, 0)
	}
	return ""
}

// unindexTask undoes indexTask. It returns the task's claim with its claim request, 0 if it has
// none.
func (m *Machine) unindexTask(t *record.Task) (c claimOfRequest) {
	if t.Status == record.StatusClaimed {
		c = claimOfRequest{t.Token, m.claims.letGo(t, &m.types.named(t.Type).held)}
	}
	m.exclude(t)
	return c
}

// indexGone adds the record of a removed task to everything derived. It returns what is wrong
// with it, or "".
func (m *Machine) indexGone(id uint64, g *record.Gone) (problem string) {
	if m.Get(id) != nil {
		return "it is there all the same"
	}
	return m.gone.index(id, g, m.Stamp().T)
}

// indexTurn adds a saved turn to everything derived. It returns what is wrong with it, or "".
func (m *Machine) indexTurn(number uint64) (problem string) {
	t := m.turns.table.Get(number)
	at, known := m.types.find(t.Type)
	if !known || !m.types.settings[at].Settings.Fair {
		return "its type is not fair"
	}
	return m.types.RestoreTurn(&m.typeOf(t.Type).Type, t, number)
}

// indexShare adds a saved share to everything derived. It returns what is wrong with it, or "".
func (m *Machine) indexShare(number uint64) (problem string) {
	of := m.shares.table.Get(number)
	perKey := int64(0)
	if at, known := m.types.find(of.Type); known {
		perKey = m.types.settings[at].Settings.RateLimitPerKey
	}
	if of.Spent > 0 && of.Settings.RateLimit == 0 && perKey == 0 {
		return "it has a bucket without a limit"
	}
	ts := m.typeOf(of.Type)
	if _, other := ts.SavedShare(of.Key); other != nil {
		return "it is saved twice"
	}
	if of.Settings != (record.ShareSettings{}) {
		m.shares.set++
	}
	ts.SaveShare(of.Key, number, of)
	m.types.SetWeight(&ts.Type, of.Key, of.Settings.Weight, &m.turns)
	m.types.ArrangeShares(&ts.Type, &m.turns, m.Stamp().T)
	return ""
}

// unindexShare undoes indexShare.
func (m *Machine) unindexShare(number uint64) {
	of := m.shares.table.Get(number)
	if of.Settings != (record.ShareSettings{}) {
		m.shares.set--
	}
	ts := m.types.named(of.Type)
	ts.SaveShare(of.Key, 0, nil)
	m.types.ArrangeShares(&ts.Type, &m.turns, m.Stamp().T)
}

// contradiction returns an error for an inconsistent record.
func contradiction(kind record.Kind, id uint64, problem string) error {
	return fmt.Errorf("%v %d: %s: %w", kind, id, problem, ErrCorrupt)
}

// claimOfRequest is a live claim with the number of its claim request. An undo keeps it for
// requests that did not change: these are not indexed again, so their claims would lose them.
type claimOfRequest struct{ token, request uint64 }

// attachSteps checks how a saved task relates to its parent or steps, and gives a parent's plan to
// its steps. It returns what is wrong, or "". All records must be loaded, and parents must come
// before their steps.
func attachSteps(m *Machine, t *record.Task) (problem string) {
	switch o := t.Opts(); {
	case o.Parent != nil:
		return attachPlan(m, t, o.Parent.Plan)
	case o.Step != nil:
		return problemOfStep(m, t, o.Step)
	}
	return ""
}

// problemOfStep returns what is wrong with a saved step, or "". The rest is checked with its
// parent.
func problemOfStep(m *Machine, t *record.Task, s *record.Step) string {
	parent := m.Get(s.ParentID)
	if parent == nil || parent.Parent() == nil {
		return "its parent is not there"
	}
	_, hasPlace := parent.Parent().Plan.PlaceOf(s.ParentID, t.ID)
	switch {
	case !hasPlace:
		return "its parent has no place for it"
	case t.RemoveAt != 0:
		return "it is a step that is removed before its parent"
	}
	return ""
}

// attachPlan gives the plan of a saved parent to its steps. It returns what is wrong with them, or
// "".
func attachPlan(m *Machine, t *record.Task, p *record.Plan) (problem string) {
	if !p.Sound() {
		return "its steps depend on each other, or on what is not there"
	}
	completed := make([]bool, len(p.Steps))
	step := &record.Step{ParentID: t.ID, Plan: p}
	for place := range p.Steps {
		s := m.Get(p.IDOf(t.ID, place))
		switch {
		case s == nil || s.Step() == nil || s.Step().ParentID != t.ID:
			return "it lacks a step"
		case t.Status.Ended() && !s.Status.Ended():
			return "it has ended before a step of it"
		case s.Step().Plan == nil:
			s.Options.Step = step // safe in place, because nothing has read it yet
		}
		completed[place] = s.Status == record.StatusCompleted
	}
	for place := range p.Steps {
		s := m.Get(p.IDOf(t.ID, place))
		if !p.Suits(place, s.Status, completed, s.Opts().SignalUntil != 0) {
			return "a step waits for others, or does not, as it should not"
		}
	}
	return ""
}
