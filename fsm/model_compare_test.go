package fsm

import (
	"bytes"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// alike compares results: an absent list equals an empty one. Ready is compared separately,
// because it is an upper bound. Rates are left out, and the ends of a tick come in any
// order.
var alike = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Applied{}, "Ready"), ratesAside,
	cmpopts.SortSlices(func(a, b uint64) bool { return a < b }), plansToo,
}

// ratesAside leaves rates out: they are no part of the state.
var ratesAside = cmpopts.IgnoreFields(TypeView{}, "SubmittedPerS", "CompletedPerS", "FailedPerS")

// plansToo lets what is derived of plans be compared.
var plansToo = cmp.AllowUnexported(record.Plan{}, record.PlannedStep{})

// diffOf tells how what the machine has differs from what the model has, "" if it
// does not.
func diffOf(want, got any) string { return diffBy(want, got, alike) }

// diffBy is cmp.Diff. That takes its time also where nothing differs, and this is
// asked of everything after every entry: so cmp is only asked for what to tell.
func diffBy(want, got any, options ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, options...)
}

// plainly leaves out what comes in any order, or is compared on its own.
func plainly(a Applied) Applied {
	a.Ready, a.Ended = nil, slices.Sorted(slices.Values(a.Ended))
	return a
}

// TestMachine_MatchesModel applies random logs to the machine and to the
// model: every result, every task and every count is the same, also after
// restores in between.
func TestMachine_MatchesModel(t *testing.T) {
	t.Parallel()
	t.Run("tasks", func(t *testing.T) {
		t.Parallel()
		matchModel(t, func(t *rapid.T) []testEntry { return drawThemedLog(t, 60, 0, themeSteps) })
	})
	t.Run("parents", func(t *testing.T) { // take more to come to an end
		t.Parallel()
		matchModel(t, func(t *rapid.T) []testEntry { return drawThemedLog(t, 120, themeSteps, themeCount) })
	})
}

func matchModel(t *testing.T, draw func(t *rapid.T) []testEntry) {
	t.Helper()
	entries, commands := 0, 0
	proof.Check(t, func(rt *rapid.T) {
		most := rapid.SampledFrom([]int{5, 1_000_000}).Draw(rt, "remembered")
		m, s := newRestful(), newModel()
		m.requests.max, s.most = most, most
		m.requests.full = rapid.SampledFrom([]int{2, fullMin}).Draw(rt, "claims of a full record")
		s.full = m.requests.full
		m.gone.max = rapid.SampledFrom([]int{3, 1_000_000}).Draw(rt, "removed ones remembered")
		s.mostGone = m.gone.max
		m.trail.ChunkBytes = rapid.SampledFrom([]int{2 * event.EventRoom, event.ChunkBytes}).Draw(rt, "chunks")
		die := rapid.Uint32()
		for _, e := range draw(rt) {
			compareEntry(rt, m, s, e)
			compareReads(rt, newGenerator(func(n int) int { return int(die.Draw(rt, "die") % uint32(n)) }), m, s)
			entries, commands = entries+1, commands+len(e.Commands)
			if rapid.IntRange(0, 15).Draw(rt, "restore") == 1 {
				m, s.counted = restoredLike(rt, m), nil
			}
		}
	})
	t.Logf("compared %d commands of %d entries", commands, entries)
}

// restoredLike returns what a snapshot of the machine holds: it has the same hash.
func restoredLike(t rapid.TB, m *Machine) *Machine {
	other, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, m)))
	if err != nil {
		t.Fatalf("restore at index %d: %v", m.Index(), err)
	}
	other.requests.max, other.requests.full, other.gone.max, other.trail.ChunkBytes = m.requests.max, m.requests.full, m.gone.max, m.trail.ChunkBytes
	if err := other.check(); err != nil || hashOf(other) != hashOf(m) {
		t.Fatalf("restored at index %d it has another hash, or %v", m.Index(), err)
	}
	return other
}

// compareEntry applies an entry to both.
func compareEntry(t rapid.TB, m *Machine, s *model, e testEntry) {
	before := newlyClaimable(s, record.Stamp{U: max(s.u, e.Stamp.U), T: max(s.t, e.Stamp.T)}, nil)
	got, err := m.apply(e.Index, e.Stamp, e.Commands)
	if err != nil {
		t.Fatalf("apply %d: %v", e.Index, err)
	}
	s.after = m.Get
	want := s.apply(e, got)
	if len(s.faults) > 0 {
		t.Fatalf("entry %+v: %v", e, s.faults)
	}
	if diff := diffOf(plainly(want), plainly(got)); diff != "" {
		t.Fatalf("entry %+v (-model +machine):\n%s", e, diff)
	}
	if err := m.check(); err != nil {
		t.Fatalf("entry %+v: %v", e, err)
	}
	compareEviction(t, m, s, e, got)
	compareWakes(t, s, e, got, before)
}

// newlyClaimable counts, by type, how many tasks claims could take one after
// another at that time, less what before has.
func newlyClaimable(s *model, now record.Stamp, before map[string]int) map[string]int {
	n, inShare := map[string]int{}, map[shareName]int{}
	for _, t := range s.tasks {
		sh := ofShare(t)
		if s.ready(t) && inShare[sh] < s.roomIn(sh, now.T) { // of a group one is, and holds back the others
			n[t.Type]++
			inShare[sh]++
		}
	}
	for name, ready := range n {
		n[name] = min(ready, s.room(name, now.T))
	}
	for name := range before {
		n[name] = max(0, n[name]-before[name])
	}
	return n
}

// room returns how many claims of the type its settings allow at that time.
func (s *model) room(name string, now int64) int {
	x := s.typeRecord(name)
	if x == nil {
		return math.MaxInt
	}
	room := math.MaxInt
	if x.MaxClaimed > 0 {
		room = max(0, int(x.MaxClaimed)-s.claimedOf(name))
	}
	if x.RateLimit > 0 {
		later := *x
		later.fill(now)
		room = min(room, int(later.bucket.Int64()/oneClaim9))
	}
	if x.Paused {
		return 0
	}
	return room
}

// compareWakes ensures that waiting claims are woken for everything that became claimable.
func compareWakes(t rapid.TB, s *model, e testEntry, got Applied, before map[string]int) {
	listed := map[string]int{}
	for _, r := range got.Ready {
		if listed[r.Type] != 0 || r.Count < 1 {
			t.Fatalf("entry %+v: ready %+v", e, got.Ready)
		}
		listed[r.Type] = r.Count
	}
	for name, n := range newlyClaimable(s, record.Stamp{U: s.u, T: s.t}, before) {
		if listed[name] < n {
			t.Fatalf("entry %+v: %d tasks of type %q became claimable, ready %+v", e, n, name, got.Ready)
		}
	}
}

// compareEviction ensures that an eviction went as far as it had to.
func compareEviction(t rapid.TB, m *Machine, s *model, e testEntry, got Applied) {
	if last, ok := e.Commands[len(e.Commands)-1].(command.Forget); ok {
		compareForgetting(t, m, s, e, last)
	}
	last, ok := e.Commands[len(e.Commands)-1].(command.Evict)
	if !ok {
		return
	}
	ended := slices.ContainsFunc(s.tasks, func(t *record.Task) bool { return t.Status >= record.StatusCompleted && t.Opts().Step == nil })
	if m.EndedBytes() > last.Bytes && ended {
		t.Fatalf("entry %+v: %d bytes of ended tasks are left", e, m.EndedBytes())
	}
	evicted := got.Results[len(got.Results)-1].Evicted
	if evicted == 0 {
		return
	}
	if m.EndedBytes()+s.evictedBytes <= last.Bytes {
		t.Fatalf("entry %+v: evicted %d, task %d needed not go", e, evicted, s.evicted.ID)
	}
}

// compareForgetting ensures that what is remembered was forgotten as far as it had to be.
func compareForgetting(t rapid.TB, m *Machine, s *model, e testEntry, last command.Forget) {
	left := slices.ContainsFunc(s.gone, func(g *modelGone) bool { return s.u < g.untilU }) ||
		slices.ContainsFunc(s.requests, func(r *modelRequest) bool { return r.endedU >= 0 && s.u < r.endedU+tenMinutes })
	if m.RememberedBytes() > last.Bytes && left {
		t.Fatalf("entry %+v: %d bytes are remembered", e, m.RememberedBytes())
	}
}

func compareReads(t rapid.TB, g *generator, m *Machine, s *model) {
	var tasks []*record.Task
	for _, task := range m.tasks.All() {
		tasks = append(tasks, task)
	}
	if diff := diffOf(s.tasks, tasks); diff != "" {
		t.Fatalf("tasks (-model +machine):\n%s", diff)
	}
	now := record.Stamp{U: s.u + 1, T: s.t + 100}
	stats := m.Stats(now)
	stats.Bytes = 0
	if diff := diffOf(s.stats(now), stats); diff != "" {
		t.Fatalf("stats (-model +machine):\n%s", diff)
	}
	slices.SortFunc(s.nodes, func(a, b record.NodeRecord) int {
		if a.UUID < b.UUID {
			return -1
		}
		return 1
	})
	if diff := diffOf(s.nodes, m.Nodes()); diff != "" || s.level != m.Level() {
		t.Fatalf("level %d, want %d; nodes (-model +machine):\n%s", m.Level(), s.level, diff)
	}
	compareDue(t, m, s)
	if diff := diffOf(s.typeViews(), m.Types("", 0, record.Stamp{U: s.u, T: s.t})); diff != "" {
		t.Fatalf("types (-model +machine):\n%s", diff)
	}
	compareTypePages(t, m)
	for _, key := range []string{"", "k1", "k2", "k3"} {
		want := s.holder("", key, false) // of no type, so it meets none that is its type's alone
		if got := m.ByKey(key); (want == nil) != (got == nil) || want != nil && want.ID != got.ID {
			t.Fatalf("key %q leads to %+v, want %+v", key, got, want)
		}
		for _, taskType := range []string{"mail", "scan", "video"} {
			want := s.holder(taskType, key, true)
			if got := m.ByTypeKey(taskType, key); (want == nil) != (got == nil) || want != nil && want.ID != got.ID {
				t.Fatalf("key %q of type %s leads to %+v, want %+v", key, taskType, got, want)
			}
		}
	}
	compareList(t, g, m, s)
	compareFailures(t, g, m, s)
	compareFound(t, g, m, record.Stamp{U: s.u, T: s.t})
	compareSchedules(t, g, m, s)
	compareTrail(t, g, m, s)
	compareHistory(t, m, s)
	compareClaimable(t, g, m, s)
	compareWhy(t, g, m, s)
	compareShares(t, g, m, s)
	compareOpenings(t, g, m, s)
	compareParents(t, g, m, s)
}

// compareDue compares when a tick has something to do next.
func compareDue(t rapid.TB, m *Machine, s *model) {
	want := int64(0)
	for _, x := range s.tasks {
		if due := s.due(x); due != 0 && (want == 0 || due < want) {
			want = due
		}
	}
	for _, x := range s.types {
		if v := x.move; v != nil && v.Status == record.MoveRunning && (want == 0 || v.NextAt < want) {
			want = v.NextAt
		}
	}
	if got, ok := m.NextDue(); ok != (want != 0) || ok && got != want {
		t.Fatalf("next due at %d, %v, want %d", got, ok, want)
	}
}

// compareOpenings compares which types, or shares of them, will have let in enough by then, and
// when the next one will have.
func compareOpenings(t rapid.TB, g *generator, m *Machine, s *model) {
	type opening struct {
		t    int64
		name string
	}
	at := s.t + pick[int64](g, 0, 1, 400, 1000, 5000, 100_000)
	var want []opening
	counts := map[string]int{}
	next := int64(0)
	later := s.copy()
	later.t = at
	for _, x := range s.types {
		unlimited := s.copy()
		unlimited.typeRecord(x.name).RateLimit = 0
		c := command.ClaimNext{Types: []string{x.name}}
		if x.RateLimit == 0 || s.choose(c) != nil || unlimited.choose(c) == nil {
			continue
		}
		opens := x.at + ceilQuo(new(big.Int).Sub(big.NewInt(oneClaim9), x.bucket), x.RateLimit)
		want = append(want, opening{opens, x.name})
		counts[x.name] = newlyClaimable(later, record.Stamp{U: s.u, T: at}, nil)[x.name]
	}
	inShares := map[string]bool{} // types that have limits of shares: machines tell at most how many
	for n, of := range s.shares {
		inShares[n.taskType] = true
		waiting, _ := s.waiting(n)
		opens := s.shareOpensAt(n, s.t)
		if opens == 0 || of.Paused || s.slotsOf(n) <= 0 || waiting == 0 {
			continue
		}
		want = append(want, opening{opens, n.taskType})
		counts[n.taskType] += min(s.room(n.taskType, at), s.roomIn(n, at))
	}
	slices.SortFunc(want, func(a, b opening) int {
		if a.t != b.t {
			return int(a.t - b.t)
		}
		return strings.Compare(a.name, b.name)
	})
	var due []ReadyTasks
	for _, o := range want {
		switch {
		case o.t > at:
			if next == 0 {
				next = o.t
			}
		case counts[o.name] > 0:
			due = append(due, ReadyTasks{Type: o.name, Count: counts[o.name]})
			counts[o.name] = 0 // each once
		}
	}
	gotDue, gotNext, ok := m.Openings(at)
	for i := range min(len(due), len(gotDue)) {
		if inShares[due[i].Type] || s.settings(due[i].Type).MaxClaimedPerKey > 0 {
			due[i].Count = gotDue[i].Count
		}
	}
	if diff := diffOf(due, gotDue); diff != "" || ok != (next != 0) || gotNext != next {
		t.Fatalf("at %d, next opening %d, %v, want %d; open by then (-model +machine):\n%s", at, gotNext, ok, next, diff)
	}
}

// ceilQuo is n / by, rounded up.
func ceilQuo(n *big.Int, by int64) int64 {
	q, rest := new(big.Int).QuoRem(n, big.NewInt(by), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

// typeViews shows every type that has tasks, settings or rates, by name.
func (s *model) typeViews() []TypeView {
	var names []string
	for _, t := range s.tasks {
		names = append(names, t.Type)
	}
	for _, x := range s.types {
		names = append(names, x.name)
	}
	kept := map[string]bool{}
	for n, sh := range s.shares {
		names, kept[n.taskType] = append(names, n.taskType), kept[n.taskType] || sh.ShareSettings != (record.ShareSettings{})
	}
	for _, c := range s.counted {
		names = append(names, c.of)
	}
	slices.Sort(names)
	var views []TypeView
	for _, name := range slices.Compact(names) {
		v, rates := s.typeView(name), TypeView{Type: name}
		rates.SubmittedPerS, rates.CompletedPerS, rates.FailedPerS = s.perS(name, record.StatusPending), s.perS(name, record.StatusCompleted), s.perS(name, record.StatusFailed)
		if v == (TypeView{Type: name}) && rates == v && !kept[name] {
			continue
		}
		v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = rates.SubmittedPerS, rates.CompletedPerS, rates.FailedPerS
		views = append(views, v)
	}
	return views
}

// list is the list with neither cursor nor bounds.
func (s *model) list(q ListQuery) []*record.Task {
	var tasks []*record.Task
	for _, t := range s.tasks {
		// Without a type the key is looked for among all tasks.
		ofType := q.Key != "" && q.Type == "" && t.Opts().KeyOfType
		if s.selected(q.Filter, t) && !ofType && (q.Failure == nil || t.Status == record.StatusFailed && q.Failure([]byte(t.Type), []byte(t.Error))) {
			tasks = append(tasks, t)
		}
	}
	switch {
	case q.ByEnd:
		slices.Reverse(tasks)
		slices.SortStableFunc(tasks, func(a, b *record.Task) int { return int(b.CompletedAt - a.CompletedAt) })
	case q.Descending:
		slices.Reverse(tasks)
	}
	return tasks
}

func (s *model) stats(now record.Stamp) Stats {
	st := Stats{Index: s.index}
	for _, t := range s.tasks {
		st.Counts[t.Status]++
		at := slices.IndexFunc(st.Types, func(x TypeStats) bool { return x.Type == t.Type })
		if at < 0 {
			at = len(st.Types)
			st.Types = append(st.Types, TypeStats{Type: t.Type})
		}
		st.Types[at].Counts[t.Status]++
	}
	slices.SortFunc(st.Types, func(a, b TypeStats) int {
		if a.Type < b.Type {
			return -1
		}
		return 1
	})
	if i := slices.IndexFunc(s.tasks, func(t *record.Task) bool { return t.Status == record.StatusPending }); i >= 0 {
		st.OldestPendingAgeMS = max(0, now.T-s.tasks[i].CreatedAt)
	}
	return st
}

// compareList reads a list page by page.
func compareList(t rapid.TB, g *generator, m *Machine, s *model) {
	q := ListQuery{Filter: g.filter(m), Descending: g.dice(2) == 0, Limit: pick(g, 1, 3, 1000)}
	if len(s.tasks) > 0 {
		q.CreatedAfter = pick(g, 0, 0, s.tasks[g.dice(len(s.tasks))].CreatedAt)
		q.CreatedBefore = pick(g, 0, 0, s.tasks[g.dice(len(s.tasks))].CreatedAt)
	}
	if q.Descending && g.dice(2) == 0 {
		q.ByEnd, q.Status = true, pick(g, record.StatusCompleted, record.StatusFailed, record.StatusCancelled)
	}
	if q.Status == record.StatusFailed && g.dice(2) == 0 {
		kind := pick(g, "", "boom", "none such")
		q.Failure = func(taskType, err []byte) bool { return string(taskType) == "a" || string(err) == kind }
	}
	var got []*record.Task
	for page := (ListPage{Next: q.From}); ; {
		q.From, q.FromAt = page.Next, page.NextAt
		page = m.List(q)
		if len(page.Tasks) > q.Limit {
			t.Fatalf("a page of %d tasks, limit %d", len(page.Tasks), q.Limit)
		}
		got = append(got, page.Tasks...)
		if page.Next == 0 {
			break
		}
	}
	q.From = 0
	if diff := diffOf(s.list(q), got); diff != "" {
		t.Fatalf("list %+v (-model +machine):\n%s", q, diff)
	}
}

// compareClaimable asks for claims with the clocks of now, which have gone on
// since the last entry.
func compareClaimable(t rapid.TB, g *generator, m *Machine, s *model) {
	c := g.nextClaim()
	now := record.Stamp{U: s.u + pick[int64](g, 0, 1, rememberMS-1, rememberMS), T: s.t + pick[int64](g, 0, 1, 400, 1000, 5000)}
	later := s.copy()
	later.u, later.t = now.U, now.T
	want := later.choose(c) != nil
	for _, r := range s.requests {
		if c.RequestID != "" && r.id == c.RequestID && (r.endedU < 0 || now.U < r.endedU+600_000) {
			want = want || slices.ContainsFunc(r.calls, func(call modelCall) bool { return call.place == c.RequestPlace })
		}
	}
	if got := m.Claimable(c, now); got != want {
		t.Fatalf("claimable %+v: %v, want %v", c, got, want)
	}
}

// compareTypePages compares all types with those of pages.
func compareTypePages(t rapid.TB, m *Machine) {
	all := m.Types("", 0, m.Stamp())
	var paged []TypeView
	for after, more := "", true; more && len(paged) <= len(all); {
		page := m.Types(after, 2, m.Stamp())
		if more = len(page) == 2; more {
			after = page[1].Type
		}
		paged = append(paged, page...)
	}
	if diff := diffOf(all, paged); diff != "" {
		t.Fatalf("types (-at once +by pages):\n%s", diff)
	}
}
