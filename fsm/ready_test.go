package fsm

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// checkReady compares what claims would find with what the saved records say, computed
// plainly.
func (m *Machine) checkReady() error {
	ready, behind := m.claimablePlainly()
	var open []*record.Task
	next, names := int64(0), []string{}
	for ts := range m.types.from("") {
		name := ts.Name()
		names = append(names, name)
		all := ready[name]
		ready[name] = slices.DeleteFunc(slices.Clone(all), func(t *record.Task) bool {
			closed, _ := m.isShareClosed(t)
			return closed
		})
		if err := m.checkType(ts, ready[name], all, behind[name]); err != nil {
			return fmt.Errorf("type %q: %w", name, err)
		}
		for _, t := range all {
			if _, at := m.isShareClosed(t); at != 0 && (next == 0 || at < next) {
				next = at
			}
		}
		switch at, ever := m.claimableAtPlainly(name, len(ready[name])); {
		case ever && at == m.header.Stamp.T:
			open = append(open, ready[name]...)
		case ever && (next == 0 || at < next):
			next = at
		}
	}
	if at, ok := m.NextOpening(); at != next || ok != (next != 0) {
		return fmt.Errorf("the next type opens at %d, %v, want %d", at, ok, next)
	}
	if err := m.checkChoices(nil, open); err != nil {
		return err
	}
	if err := m.checkChoices(names, open); err != nil {
		return err
	}
	if len(names) > 0 {
		if err := m.checkChoices(names[m.header.Index%uint64(len(names)):][:1], open); err != nil {
			return err
		}
	}
	return m.checkRecords()
}

// checkChoices compares what claims of the types would take first, nil being any, with a
// search of what is open.
func (m *Machine) checkChoices(types []string, open []*record.Task) error {
	for _, left := range []int32{0, 1, 2, 1000} {
		above := slices.DeleteFunc(slices.Clone(open), func(t *record.Task) bool {
			return types != nil && !slices.Contains(types, t.Type) || t.MaxAttempts != 0 && t.MaxAttempts-t.Attempts <= left
		})
		c := command.ClaimNext{Types: types, Limit: 1 + int32(m.header.Index%2), MoreAttempts: left}
		if got := m.Claimable(c, m.header.Stamp); got != (len(above) > 0) {
			return fmt.Errorf("%+v would take something: %v, there are %d", c, got, len(above))
		}
		if left > 0 && m.header.Index%2 == 0 {
			continue // the known attempts left stay longer
		}
		for _, c.SortBy = range []command.SortBy{command.SortPriority, command.SortCreatedAt, command.SortRandom} {
			for _, c.Ascending = range []bool{false, true} {
				next := m.types.Choose(c, nil, &index.Dice{Index: m.header.Index})
				got, ok := next.First()
				want, random := m.firstByTurn(c, above), c.SortBy == command.SortRandom
				if ok != (want != 0) || !random && got != want ||
					random && ok && !slices.ContainsFunc(above, func(t *record.Task) bool { return t.ID == got }) {
					return fmt.Errorf("%+v takes task %d, want %d of %d", c, got, want, len(above))
				}
			}
		}
	}
	return nil
}

// firstByTurn is firstFor, or, in a fair type, the first task of the share whose turn it is.
func (m *Machine) firstByTurn(c command.ClaimNext, tasks []*record.Task) uint64 {
	id := firstFor(c, tasks)
	if id == 0 || c.SortBy != command.SortPriority || c.Ascending || c.MoreAttempts > 0 {
		return id
	}
	first := m.Get(id)
	if !m.types.settingsOf(first.Type).Fair {
		return id
	}
	alike := slices.DeleteFunc(slices.Clone(tasks), func(t *record.Task) bool { return t.Type != first.Type || t.Priority != first.Priority })
	return slices.MinFunc(alike, func(a, b *record.Task) int {
		tagA, numberA := m.tagPlainly(turnOf(a))
		tagB, numberB := m.tagPlainly(turnOf(b))
		return cmp.Or(cmp.Compare(int64(tagA-tagB), 0), cmp.Compare(numberA, numberB), cmp.Compare(a.ID, b.ID))
	}).ID
}

// tagPlainly returns a tag or clock: what is saved and its number, or its first value.
func (m *Machine) tagPlainly(of record.Turn) (value, number uint64) {
	for number, saved := range m.turns.table.All() {
		was := *saved
		if was.Value = 0; was == of {
			return saved.Value, number
		}
	}
	if of.Clock {
		return 0, 0
	}
	return m.turnPlainly(of), 0
}

// turnPlainly returns one turn of the share of a tag.
func (m *Machine) turnPlainly(tag record.Turn) uint64 {
	t := &record.Task{Type: tag.Type}
	t.SetOptions(record.Options{ShareKey: tag.ShareKey})
	return 1_000_000_000 / uint64(cmp.Or(m.savedShare(t).Settings.Weight, 100))
}

// firstFor returns the id of the task that the claim takes first, unless it may take any; or 0.
func firstFor(c command.ClaimNext, tasks []*record.Task) uint64 {
	if len(tasks) == 0 {
		return 0
	}
	return slices.MinFunc(tasks, func(a, b *record.Task) int {
		order := cmp.Compare(b.ID, a.ID)
		if c.SortBy != command.SortCreatedAt {
			order = cmp.Compare(b.Priority, a.Priority)
		}
		if c.Ascending {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.ID, b.ID))
	}).ID
}

// savedShare returns what is saved of the task's share, as the records have it.
func (m *Machine) savedShare(t *record.Task) record.Share {
	for _, of := range m.shares.table.All() {
		if of.Type == t.Type && of.Key == t.Opts().ShareKey {
			return *of
		}
	}
	return record.Share{}
}

// isShareClosed reports whether the task's share is paused, has as many claims as it may have, or
// a bucket without a claim; and when that has one if it is the only reason, else 0.
func (m *Machine) isShareClosed(t *record.Task) (closed bool, opensAt int64) {
	if t.Opts().ShareKey == "" {
		return false, 0
	}
	of, ofType := m.savedShare(t), m.types.settingsOf(t.Type)
	rate := cmp.Or(of.Settings.RateLimit, ofType.RateLimitPerKey)
	most, claimed := cmp.Or(of.Settings.MaxClaimed, ofType.MaxClaimedPerKey), int32(0)
	for _, other := range m.tasks.All() {
		if other.Type == t.Type && other.Opts().ShareKey == t.Opts().ShareKey && other.Status == record.StatusClaimed {
			claimed++
		}
	}
	if of.Settings.Paused || most > 0 && claimed >= most {
		return true, 0
	}
	// Spent - rate * (T - SpentT) may be as much as the bucket holds, less one claim.
	over := new(big.Int).Sub(big.NewInt(of.Spent), big.NewInt(max(1_000_000_000, 1000*rate)-1_000_000_000))
	if rate == 0 || over.Sign() <= 0 {
		return false, 0
	}
	if opensAt = of.SpentT + ceilQuo(over, rate); opensAt <= m.header.Stamp.T {
		return false, 0
	}
	return true, opensAt
}

// checkType checks what is known of one type. Of all the tasks that lead, some are ready: those
// of shares that are not full.
func (m *Machine) checkType(ts *typeState, ready, all, behind []*record.Task) error {
	if ts.Ready() != len(ready) {
		return fmt.Errorf("%d tasks are ready, want %d", ts.Ready(), len(ready))
	}
	oldest := uint64(0)
	for _, t := range slices.Concat(all, behind) {
		if oldest == 0 || t.ID < oldest {
			oldest = t.ID
		}
	}
	if ts.Oldest() != oldest {
		return fmt.Errorf("the oldest is %d, want %d", ts.Oldest(), oldest)
	}
	for _, t := range behind {
		if ts.Leads(t) || ts.BehindWhom(t) == 0 {
			return fmt.Errorf("task %d is behind %d, and leads: %v", t.ID, ts.BehindWhom(t), ts.Leads(t))
		}
	}
	for _, t := range all {
		ahead := int64(0)
		for _, other := range all {
			if other.Opts().ShareKey != t.Opts().ShareKey {
				continue
			}
			if other.Priority > t.Priority || other.Priority == t.Priority && other.ID < t.ID {
				ahead++
			}
		}
		if !ts.Leads(t) || ts.BehindWhom(t) != 0 || ts.Ahead(t) != ahead {
			return fmt.Errorf("%d tasks are ahead of task %d, want %d; it leads: %v", ts.Ahead(t), t.ID, ahead, ts.Leads(t))
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

// claimableAtPlainly returns when, by the records alone, tasks of a type with that many ready
// ones can be claimed: T if they can be now. ever is false if time alone does not allow it.
func (m *Machine) claimableAtPlainly(name string, ready int) (at int64, ever bool) {
	claimed := int32(0)
	for _, t := range m.tasks.All() {
		if t.Type == name && t.Status == record.StatusClaimed {
			claimed++
		}
	}
	now := m.header.Stamp.T
	place, known := m.types.find(name)
	if ready == 0 {
		return 0, false
	}
	if !known {
		return now, true
	}
	r := m.types.settings[place]
	if s := r.Settings; s.Paused || s.MaxClaimed > 0 && claimed >= s.MaxClaimed {
		return 0, false
	}
	if r.Settings.RateLimit == 0 {
		return now, true
	}
	// Bucket + RateLimit * (T - BucketT) >= 10^9, and exactly when.
	rate, missing := big.NewInt(r.Settings.RateLimit), big.NewInt(1_000_000_000-r.Bucket)
	wait, rest := new(big.Int).QuoRem(missing, rate, new(big.Int))
	if rest.Sign() > 0 {
		wait.Add(wait, big.NewInt(1))
	}
	return max(wait.Int64()+r.BucketT, now), true
}

// checkRecords checks the settings of types.
func (m *Machine) checkRecords() error {
	for i, r := range m.types.settings {
		ts := m.types.named(r.Name)
		switch {
		case i > 0 && m.types.settings[i-1].Name >= r.Name:
			return fmt.Errorf("settings of %q are out of order", r.Name)
		case ts == nil || ts.Record() != r:
			return fmt.Errorf("type %q does not have its settings", r.Name)
		case r.Settings == (record.TypeSettings{}):
			return fmt.Errorf("type %q has a record without settings", r.Name)
		case r.Moving() != slices.Contains(m.types.moving, r):
			return fmt.Errorf("type %q is not among those with a move, or is without one", r.Name)
		case r.Settings.RateLimit == 0 && (r.Bucket != 0 || r.BucketT != 0):
			return fmt.Errorf("type %q has a bucket without a limit", r.Name)
		case r.Settings.RateLimit > 0 && r.Bucket > max(1_000_000_000, 1000*r.Settings.RateLimit) || r.Bucket < 0 || r.BucketT > m.header.Stamp.T:
			return fmt.Errorf("the bucket of type %q holds %d at %d", r.Name, r.Bucket, r.BucketT)
		}
	}
	for ts := range m.types.from("") {
		if ts.tasks == 0 && ts.Record() == nil && !ts.HasSaved() {
			return fmt.Errorf("type %q has neither tasks nor settings", ts.Name())
		}
	}
	return nil
}
