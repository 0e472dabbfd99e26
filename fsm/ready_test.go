package fsm

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// checkReady compares what claims would find, and all that is in the indexes
// for it, with what the saved records say, computed plainly.
func (m *Machine) checkReady() error {
	ready, behind := m.claimablePlainly()
	var any []*record.Task
	var openings []opening
	for name, ts := range m.types {
		if err := m.checkQueues(ts, ready[name], behind[name]); err != nil {
			return fmt.Errorf("type %q: %w", name, err)
		}
		standing, at := m.standingPlainly(name, len(ready[name]))
		if ts.standing != standing || ts.opensAt != at {
			return fmt.Errorf("type %q stands at %d until %d, want %d until %d", name, ts.standing, ts.opensAt, standing, at)
		}
		switch standing {
		case typeOpen:
			any = append(any, ready[name]...)
		case typeWaits:
			openings = append(openings, opening{at, name})
		}
	}
	for o := range index.Orders {
		id, ok := m.ready.First(o)
		if want := firstIn(o, any); ok != (want != 0) || id != want {
			return fmt.Errorf("first of any type in order %d is %d, want %d", o, id, want)
		}
	}
	if err := m.checkLadder(any); err != nil {
		return err
	}
	slices.SortFunc(openings, func(a, b opening) int { return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.name, b.name)) })
	if got := m.openings.Items(); !slices.Equal(got, openings) {
		return fmt.Errorf("openings are %v, want %v", got, openings)
	}
	return m.checkRecords()
}

// checkLadder compares what the ladder finds, once it is up to date, with a search of what
// can be claimed; before, whether there is something is told from what is stale.
func (m *Machine) checkLadder(any []*record.Task) error {
	for at, ts := range m.stale {
		if ts.stale != at+1 || m.types[ts.name] != ts {
			return fmt.Errorf("stale type %q is at %d, not %d, or forgotten", ts.name, at+1, ts.stale)
		}
	}
	for _, left := range []int32{0, 1, 2, 3, 1000} {
		above := slices.DeleteFunc(slices.Clone(any), func(t *record.Task) bool { return attemptsLeftOf(t) <= left })
		if got := m.anyAbove(left, m.header.Stamp.T); got != (len(above) > 0) {
			return fmt.Errorf("something with more than %d attempts left: %v, there are %d", left, got, len(above))
		}
	}
	if m.header.Index%2 == 0 { // else it stays stale for longer
		return nil
	}
	m.climb()
	for _, left := range []int32{0, 1, 2, 3, 1000} {
		above := slices.DeleteFunc(slices.Clone(any), func(t *record.Task) bool { return attemptsLeftOf(t) <= left })
		if got := m.ladder.Count(left); got != len(above) {
			return fmt.Errorf("%d tasks with more than %d attempts left, want %d", got, left, len(above))
		}
		for o := range index.Orders {
			if id, _ := m.ladder.First(left, o); id != firstIn(o, above) {
				return fmt.Errorf("first with more than %d attempts left in order %d is %d, want %d", left, o, id, firstIn(o, above))
			}
		}
	}
	return nil
}

// claimablePlainly returns, by type and in id order, the pending tasks that no
// other task of their group holds back, and those that one does.
func (m *Machine) claimablePlainly() (ready, behind map[string][]*record.Task) {
	type name struct{ of, group string }
	heads, claimed := map[name]uint64{}, map[name]bool{}
	for id, t := range m.tasks.All() {
		if t.Status.Ended() || t.Opts().Group == "" || t.Status == record.StatusBlocked {
			continue
		}
		n := name{t.Type, t.Opts().Group}
		if heads[n] == 0 {
			heads[n] = id
		}
		claimed[n] = claimed[n] || t.Status == record.StatusClaimed
	}
	ready, behind = map[string][]*record.Task{}, map[string][]*record.Task{}
	for id, t := range m.tasks.All() {
		n := name{t.Type, t.Opts().Group}
		switch {
		case t.Status != record.StatusPending:
		case n.group != "" && (heads[n] != id || claimed[n]):
			behind[t.Type] = append(behind[t.Type], t)
		default:
			ready[t.Type] = append(ready[t.Type], t)
		}
	}
	return ready, behind
}

// standingPlainly is typeState.standingAt by the records alone.
func (m *Machine) standingPlainly(name string, ready int) (standing, int64) {
	claimed := int32(0)
	for _, t := range m.tasks.All() {
		if t.Type == name && t.Status == record.StatusClaimed {
			claimed++
		}
	}
	at, known := m.findRecord(name)
	if ready == 0 {
		return typeClosed, 0
	}
	if !known {
		return typeOpen, 0
	}
	r := m.settings[at]
	if s := r.Settings; s.Paused || s.MaxClaimed > 0 && claimed >= s.MaxClaimed {
		return typeClosed, 0
	}
	if r.Settings.RateLimit == 0 {
		return typeOpen, 0
	}
	// Bucket + RateLimit * (T - BucketT) >= 10^9, and exactly when.
	rate, missing := big.NewInt(r.Settings.RateLimit), big.NewInt(1_000_000_000-r.Bucket)
	wait, rest := new(big.Int).QuoRem(missing, rate, new(big.Int))
	if rest.Sign() > 0 {
		wait.Add(wait, big.NewInt(1))
	}
	opensAt := wait.Int64() + r.BucketT
	if opensAt <= m.header.Stamp.T {
		return typeOpen, 0
	}
	return typeWaits, opensAt
}

// checkQueues checks the indexes of one type.
func (m *Machine) checkQueues(ts *typeState, ready, behind []*record.Task) error {
	ids := func(tasks []*record.Task) (ids []uint64) {
		for _, t := range tasks {
			ids = append(ids, t.ID)
		}
		return ids
	}
	if got := ts.behind.Keys(); !slices.Equal(got, ids(behind)) {
		return fmt.Errorf("tasks %v are behind in their groups, want %v", got, ids(behind))
	}
	if ts.ready != len(ready) {
		return fmt.Errorf("%d tasks are ready, want %d", ts.ready, len(ready))
	}
	byLeft := map[int32][]*record.Task{}
	for _, t := range ready {
		left := int32(1001)
		if t.MaxAttempts > 0 {
			left = min(left, t.MaxAttempts-t.Attempts)
		}
		byLeft[left] = append(byLeft[left], t)
	}
	var lefts []int32
	for _, q := range ts.queues {
		lefts = append(lefts, q.Left)
		if err := checkQueue(q, byLeft[q.Left]); err != nil {
			return fmt.Errorf("%d attempts left: %w", q.Left, err)
		}
	}
	if want := slices.Sorted(maps.Keys(byLeft)); !slices.Equal(lefts, want) {
		return fmt.Errorf("queues for %v attempts left, want %v", lefts, want)
	}
	for o := range index.Orders {
		if id, _ := ts.first.First(o); id != firstIn(o, ready) {
			return fmt.Errorf("the first in order %d is %d, want %d", o, id, firstIn(o, ready))
		}
	}
	groups := map[string][]uint64{}
	for id, t := range m.tasks.All() {
		if t.Type == ts.name && !t.Status.Ended() && t.Status != record.StatusBlocked && t.Opts().Group != "" {
			groups[t.Opts().Group] = append(groups[t.Opts().Group], id)
		}
	}
	for name, ids := range groups {
		if g := ts.groups[name]; g == nil || !slices.Equal(g.ids.Keys(), ids) {
			return fmt.Errorf("group %q does not have the tasks %v", name, ids)
		}
	}
	if len(groups) != len(ts.groups) {
		return fmt.Errorf("%d groups, want %d", len(ts.groups), len(groups))
	}
	return nil
}

func checkQueue(q *index.Queue, tasks []*record.Task) error {
	if q.Len() != len(tasks) {
		return fmt.Errorf("%d tasks, want %d", q.Len(), len(tasks))
	}
	for k, t := range tasks {
		if got := q.At(k); got != t.ID {
			return fmt.Errorf("task %d comes %d-th, want %d", got, k, t.ID)
		}
		below := 0
		for _, other := range tasks[:k] {
			if other.Priority == t.Priority {
				below++
			}
		}
		if got := q.Below(t.Priority, t.ID); got != below {
			return fmt.Errorf("%d tasks of priority %d are below %d, want %d", got, t.Priority, t.ID, below)
		}
	}
	return nil
}

func (m *Machine) checkRecords() error {
	for i, r := range m.settings {
		ts := m.types[r.Name]
		switch {
		case i > 0 && m.settings[i-1].Name >= r.Name:
			return fmt.Errorf("settings of %q are out of order", r.Name)
		case ts == nil || ts.record != r:
			return fmt.Errorf("type %q does not have its settings", r.Name)
		case r.Settings == (record.TypeSettings{}):
			return fmt.Errorf("type %q has a record without settings", r.Name)
		case r.Settings.RateLimit == 0 && (r.Bucket != 0 || r.BucketT != 0):
			return fmt.Errorf("type %q has a bucket without a limit", r.Name)
		case r.Settings.RateLimit > 0 && r.Bucket > max(1_000_000_000, 1000*r.Settings.RateLimit) || r.Bucket < 0 || r.BucketT > m.header.Stamp.T:
			return fmt.Errorf("the bucket of type %q holds %d at %d", r.Name, r.Bucket, r.BucketT)
		}
	}
	for name, ts := range m.types {
		if ts.tasks == 0 && ts.record == nil {
			return fmt.Errorf("type %q has neither tasks nor settings", name)
		}
	}
	return nil
}
