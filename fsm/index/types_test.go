package index

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// world is tasks and settings, and the types of these.
type world struct {
	t      *rapid.T
	types  Types
	tasks  map[uint64]*record.Task
	limit  map[string]*record.TaskType
	shares map[[2]string]*record.Share // what is saved of them, by type and share key
	last   uint64                      // id
	now    int64
	list   command.TypeList // of listed
	saved  map[uint64]record.Turn
	ever   uint64 // number of the last turn

	weights map[record.Turn]int32 // of shares, 0 = the default
	tags    map[record.Turn]uint64
	clocks  map[record.Turn]uint64
	open    map[record.Turn]bool // shares before the last step
	fair    bool                 // it is mostly about turns
}

// Begin, Set and End implement Turns.
func (w *world) Begin(t record.Turn) (number uint64) {
	w.ever++
	w.saved[w.ever] = t
	return w.ever
}

func (w *world) Set(number, value uint64) {
	t, ok := w.saved[number]
	if !ok || t.Value == value {
		w.t.Fatalf("turn %d is set to %d, there: %v", number, value, ok)
	}
	t.Value = value
	w.saved[number] = t
}

func (w *world) Move(number, value uint64) uint64 {
	w.Set(number, value)
	w.ever++
	w.saved[w.ever] = w.saved[number]
	delete(w.saved, number)
	return w.ever
}

func (w *world) End(number uint64) {
	if _, ok := w.saved[number]; !ok {
		w.t.Fatalf("turn %d ended, which is not there", number)
	}
	delete(w.saved, number)
}

// isFair reports whether the type lets shares take turns.
func (w *world) isFair(name string) bool { return w.limit[name] != nil && w.limit[name].Settings.Fair }

// tagKey returns the key of the task's tag.
func tagKey(t *record.Task) record.Turn {
	return record.Turn{Type: t.Type, ShareKey: t.Opts().ShareKey, Priority: t.Priority}
}

// clockKey returns the key of the clock of a tag.
func clockKey(tag record.Turn) record.Turn {
	return record.Turn{Type: tag.Type, Priority: tag.Priority, Clock: true}
}

// shareOf returns the share of a tag.
func shareOf(tag record.Turn) record.Turn {
	return record.Turn{Type: tag.Type, ShareKey: tag.ShareKey}
}

// turn returns one turn of the share of a tag.
func (w *world) turn(tag record.Turn) uint64 {
	return 1_000_000_000 / uint64(cmp.Or(w.weights[shareOf(tag)], 100))
}

// settleTurns does by the rules what a step does to tags and clocks.
func (w *world) settleTurns() {
	waits, isOpen := map[record.Turn]bool{}, map[record.Turn]bool{}
	for _, t := range w.tasks {
		if w.isFair(t.Type) && t.Status == record.StatusPending && !w.isBehind(t) {
			waits[tagKey(t)] = true
			isOpen[shareOf(tagKey(t))] = !w.isFull(t)
		}
	}
	for tag := range waits {
		v := w.clocks[clockKey(tag)]
		switch value, known := w.tags[tag]; {
		case !known:
			w.tags[tag] = v + w.turn(tag)
		case isOpen[shareOf(tag)] && !w.open[shareOf(tag)] && int64(value-v) < 0:
			w.tags[tag] = v
		}
	}
	maps.DeleteFunc(w.tags, func(tag record.Turn, _ uint64) bool { return !waits[tag] })
	priorities := map[record.Turn]bool{}
	for tag := range waits {
		priorities[clockKey(tag)] = true
	}
	maps.DeleteFunc(w.clocks, func(clock record.Turn, _ uint64) bool { return !priorities[clock] })
	w.open = isOpen
}

// checkTurns compares the tags and clocks with those by the rules, and what is saved with what is
// no first value.
func (w *world) checkTurns() error {
	w.settleTurns()
	first := 0
	for tag, value := range w.tags {
		of := w.types.byName[tag.Type].stockOf(tag.ShareKey)
		at := of.tagOf(tag.Priority)
		if at < 0 || of.valueOf(at) != value {
			return fmt.Errorf("the tags of share %q of type %q are %+v, want %d at priority %d, clocks %v", tag.ShareKey, tag.Type, of.tags, value, tag.Priority, w.clocks)
		}
		if behind := value - w.clocks[clockKey(tag)]; !of.closed && behind > w.turn(tag) {
			return fmt.Errorf("tag %+v is %d behind its clock", tag, behind)
		}
		if number := of.tags[at].number; number == 0 {
			first++
			if value != w.turn(tag) {
				return fmt.Errorf("tag %+v, %d, is not saved", tag, value)
			}
		} else if tag.Value = value; w.saved[number] != tag || value == w.turn(tag) {
			return fmt.Errorf("tag %+v is saved as %+v", tag, w.saved[number])
		}
	}
	clocks := 0
	for clock, value := range w.clocks {
		if c := w.types.byName[clock.Type].turns.clocks[clock.Priority]; c == nil || c.value != value {
			return fmt.Errorf("clock %+v is %+v, want %d", clock, c, value)
		} else if value != 0 {
			clocks++
			if clock.Value = value; w.saved[c.number] != clock {
				return fmt.Errorf("clock %+v is saved as %+v", clock, w.saved[c.number])
			}
		}
	}
	if want := len(w.tags) - first + clocks; want != len(w.saved) {
		return fmt.Errorf("%d turns are saved, want %d", len(w.saved), want)
	}
	return nil
}

// listed are types that claims list.
var listed = []string{"a", "b", "c", "none"}

func (w *world) Get(id uint64) *record.Task { return w.tasks[id] }

// TestTypes holds the types against a plain search, whatever happens to tasks, settings and
// time: all that is in the indexes, not only what comes out of them.
func TestTypes(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			rapid.OneOf(
				rapid.Just(w.submit), rapid.Just(w.submit), rapid.Just(w.claim), rapid.Just(w.change), rapid.Just(w.change),
				rapid.Just(w.remove), rapid.Just(w.set), rapid.Just(w.setShare), rapid.Just(w.weigh), rapid.Just(w.wait),
			).Draw(rt, "do")()
			if err := errors.Join(w.check(), w.checkTurns()); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// TestTypes_Turns does the same with types that are mostly fair, and claims that mostly take turns.
func TestTypes_Turns(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		w.fair = true
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			rapid.OneOf(
				rapid.Just(w.submit), rapid.Just(w.submit), rapid.Just(w.claim), rapid.Just(w.claim), rapid.Just(w.claim),
				rapid.Just(w.change), rapid.Just(w.set), rapid.Just(w.weigh),
			).Draw(rt, "do")()
			if err := errors.Join(w.check(), w.checkTurns()); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// The end of a claim is noted for the room that it makes in its own share, beside the task of its group
// that can be claimed next, in another share.
func TestTypes_NotesRoomOfShares(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	ts := w.typeOf("a")
	w.types.SetRecord(ts, &record.TaskType{Name: "a", Settings: record.TypeSettings{MaxClaimedPerKey: 2}}, w, 0)
	for i, o := range []record.Options{{ShareKey: "x", Group: "g"}, {ShareKey: "y", Group: "g"}, {ShareKey: "x"}, {ShareKey: "x"}} {
		task := &record.Task{ID: uint64(i + 1), Type: "a", Status: record.StatusPending}
		task.SetOptions(o)
		w.tasks[task.ID] = task
		w.types.Enter(ts, task)
		w.types.Arrange(ts, task, w, w, 0)
	}
	w.move(w.tasks[1], func() { w.tasks[1].Status = record.StatusClaimed })
	w.types.TakeNoted()
	w.move(w.tasks[1], func() { w.tasks[1].Status = record.StatusCompleted })
	if got, want := w.types.TakeNoted(), []Ready{{Type: "a", Count: 2}}; !slices.Equal(got, want) {
		t.Errorf("noted are %v, want %v", got, want)
	}
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, tasks: map[uint64]*record.Task{}, limit: map[string]*record.TaskType{}, saved: map[uint64]record.Turn{}, shares: map[[2]string]*record.Share{},
		weights: map[record.Turn]int32{}, tags: map[record.Turn]uint64{}, clocks: map[record.Turn]uint64{},
	}
	w.types.Reset()
	return w
}

// dice returns a number below n.
func (w *world) dice(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "n") }

// typeOf returns the type; it begins it.
func (w *world) typeOf(name string) *Type {
	ts := w.types.Named(name)
	if ts == nil {
		ts = &Type{}
		w.types.Begin(ts, name, w)
	}
	return ts
}

// one returns one of the tasks, or nil.
func (w *world) one() *record.Task {
	if len(w.tasks) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(w.tasks))
	return w.tasks[ids[w.dice(len(ids))]]
}

func (w *world) submit() {
	w.last++
	status := []record.Status{record.StatusPending, record.StatusPending, record.StatusScheduled, record.StatusBlocked}[w.dice(4)]
	t := &record.Task{ID: w.last, Type: string(rune('a' + w.dice(3))), Status: status, Priority: int32(w.dice(3)), MaxAttempts: int32(w.dice(4))}
	o := record.Options{ShareKey: w.shareKey()}
	if group := w.dice(4); group > 0 {
		o.Group = fmt.Sprint(group)
	}
	t.SetOptions(o)
	w.tasks[t.ID] = t
	ts := w.typeOf(t.Type)
	w.types.Enter(ts, t)
	w.types.Arrange(ts, t, w, w, w.now)
}

// shareKey returns one of few, or "".
func (w *world) shareKey() string { return []string{"", "", "x", "y", "z"}[w.dice(5)] }

// settings returns those of the type, or the zero value.
func (w *world) settings(name string) record.TypeSettings {
	if r := w.limit[name]; r != nil {
		return r.Settings
	}
	return record.TypeSettings{}
}

// share returns what is saved of the share, its maximum and its rate limit.
func (w *world) share(taskType, key string) (saved record.Share, most int32, rate int64) {
	if of := w.shares[[2]string{taskType, key}]; of != nil {
		saved = *of
	}
	s := w.settings(taskType)
	return saved, cmp.Or(saved.Settings.MaxClaimed, s.MaxClaimedPerKey), cmp.Or(saved.Settings.RateLimit, s.RateLimitPerKey)
}

// setShare changes settings of a share.
func (w *world) setShare() {
	name, key := string(rune('a'+w.dice(3))), []string{"x", "y"}[w.dice(2)]
	saved, _, before := w.share(name, key)
	saved.Settings = record.ShareSettings{Paused: w.dice(4) == 0, MaxClaimed: int32(w.dice(3)), RateLimit: int64(w.dice(3)) * record.Million}
	saved.SetRate(before, cmp.Or(saved.Settings.RateLimit, w.settings(name).RateLimitPerKey), w.now)
	w.save(name, key, saved)
	w.types.LimitShares(w.typeOf(name), w, w.now)
	w.forget(w.types.Named(name))
}

// save sets what is saved of the share.
func (w *world) save(name, key string, of record.Share) {
	if of.IsNothing() {
		delete(w.shares, [2]string{name, key})
		w.typeOf(name).SaveShare(key, 0, nil)
		return
	}
	w.shares[[2]string{name, key}] = &of
	w.typeOf(name).SaveShare(key, 1, &of)
}

// opensAt returns when the bucket of the share holds a claim, or 0 if it does.
func (w *world) opensAt(name, key string) int64 {
	saved, _, rate := w.share(name, key)
	if rate == 0 {
		return 0
	}
	for t := w.now; ; t++ {
		if left := max(record.ClaimUnit, 1000*rate) - (saved.Spent - (t-saved.SpentT)*rate); left >= record.ClaimUnit {
			if t == w.now {
				return 0
			}
			return t
		}
	}
}

// isFull reports whether the task's share is paused, has as many claims as it may have, or a
// bucket without a claim.
func (w *world) isFull(t *record.Task) bool {
	if t.Opts().ShareKey == "" {
		return false
	}
	saved, _, _ := w.share(t.Type, t.Opts().ShareKey)
	return saved.Settings.Paused || w.isTaken(t) || w.opensAt(t.Type, t.Opts().ShareKey) != 0
}

// isTaken reports whether the task's share has as many claims as it may have.
func (w *world) isTaken(t *record.Task) bool {
	_, most, _ := w.share(t.Type, t.Opts().ShareKey)
	claimed := int32(0)
	if most == 0 {
		return false
	}
	for _, other := range w.tasks {
		if other.Type == t.Type && other.Opts().ShareKey == t.Opts().ShareKey && other.Status == record.StatusClaimed {
			claimed++
		}
	}
	return claimed >= most
}

// move changes the task.
func (w *world) move(t *record.Task, change func()) {
	ts := w.types.Named(t.Type)
	w.types.Leave(ts, t)
	change()
	w.types.Enter(ts, t)
	w.types.Arrange(ts, t, w, w, w.now)
}

// claim claims some tasks, as package fsm does.
func (w *world) claim() {
	c := command.ClaimNext{Limit: int32(1 + w.dice(3)), SortBy: command.SortBy(w.dice(3)), Ascending: w.dice(2) > 0, MoreAttempts: int32(w.dice(3))}
	if w.dice(2) > 0 {
		c.Types = listed
	}
	if w.fair && w.dice(8) > 0 {
		c.SortBy, c.Ascending, c.MoreAttempts = command.SortPriority, false, 0
	}
	dice := Dice{Index: uint64(w.dice(1000))}
	next, can := w.types.Choose(c, &w.list, &dice), w.types.Claimable(c, w.now)
	for took := range c.Limit {
		id, ok := next.First()
		if took == 0 && ok != can {
			w.t.Fatalf("%+v takes task %d, and would take something: %v", c, id, can)
		}
		if !ok {
			return
		}
		t := w.tasks[id]
		if want := w.next(c, dice); id != want {
			w.t.Fatalf("%+v took task %d as the %d-th, want %d", c, id, took, want)
		}
		w.move(t, func() {
			if r := w.limit[t.Type]; r != nil {
				r.Spend(w.now)
			}
			if key := t.Opts().ShareKey; key != "" {
				if saved, _, rate := w.share(t.Type, key); rate > 0 {
					saved.Spend(rate, w.now)
					w.save(t.Type, key, saved)
				}
			}
			t.Status = record.StatusClaimed
			t.Attempts++
		})
		next.Taken(w)
		tag := tagKey(t)
		value := w.tags[tag]
		w.settleTurns()
		if w.isFair(t.Type) && orderOf(c) == highest && c.MoreAttempts == 0 && c.SortBy != command.SortRandom {
			if _, waits := w.clocks[clockKey(tag)]; waits || w.waitsAny(tag) {
				w.clocks[clockKey(tag)] = value
			}
			if _, more := w.tags[tag]; more {
				w.tags[tag] = value + w.turn(tag)
			}
		}
		if err := w.checkTurns(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// waitsAny reports whether a share has a tag at the priority of this one.
func (w *world) waitsAny(tag record.Turn) bool {
	for other := range w.tags {
		if clockKey(other) == clockKey(tag) {
			return true
		}
	}
	return false
}

// weigh gives a share a weight.
func (w *world) weigh() {
	ts := w.types.Named(string(rune('a' + w.dice(3))))
	if ts == nil {
		return
	}
	share := record.Turn{Type: ts.name, ShareKey: []string{"x", "y", "z"}[w.dice(3)]}
	weight := []int32{0, 1, 33, 100, 300, 10_000}[w.dice(6)]
	w.weights[share] = weight
	w.types.SetWeight(ts, share.ShareKey, weight, w)
	for tag, value := range w.tags {
		if v := w.clocks[clockKey(tag)]; shareOf(tag) == share && int64(value-v-w.turn(tag)) > 0 {
			w.tags[tag] = v + w.turn(tag)
		}
	}
}

// next returns the id of the task that the claim takes next, or 0: the first in the order,
// or at random the k-th by type, share key, attempts left and id; if any type will do, by
// attempts left, type, share key and id.
func (w *world) next(c command.ClaimNext, dice Dice) uint64 {
	var all []*record.Task
	for _, t := range w.tasks {
		if t.Status == record.StatusPending && !w.isBehind(t) && !w.isFull(t) && attemptsLeftOf(t) > c.MoreAttempts &&
			w.room(w.types.Named(t.Type)) > 0 && (c.Types == nil || slices.Contains(c.Types, t.Type)) {
			all = append(all, t)
		}
	}
	if c.SortBy != command.SortRandom || len(all) == 0 {
		first := firstIn(orderOf(c), all)
		if orderOf(c) == highest && c.MoreAttempts == 0 && len(all) > 0 && w.isFair(w.tasks[first].Type) {
			return w.byTurn(all, w.tasks[first])
		}
		return first
	}
	slices.SortFunc(all, func(a, b *record.Task) int {
		left := cmp.Compare(attemptsLeftOf(a), attemptsLeftOf(b))
		name := cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Opts().ShareKey, b.Opts().ShareKey))
		if c.Types != nil {
			left, name = name, left
		}
		return cmp.Or(left, name, cmp.Compare(a.ID, b.ID))
	})
	return all[dice.pick(len(all))].ID
}

// byTurn returns the id of the oldest task of the same type and priority as first whose share's
// turn it is.
func (w *world) byTurn(all []*record.Task, first *record.Task) uint64 {
	all = slices.DeleteFunc(slices.Clone(all), func(t *record.Task) bool { return t.Type != first.Type || t.Priority != first.Priority })
	return slices.MinFunc(all, func(a, b *record.Task) int {
		return cmp.Or(cmp.Compare(int64(w.tags[tagKey(a)]-w.tags[tagKey(b)]), 0), cmp.Compare(w.numberOf(tagKey(a)), w.numberOf(tagKey(b))), cmp.Compare(a.ID, b.ID))
	}).ID
}

// numberOf returns the number of the saved tag, or 0.
func (w *world) numberOf(tag record.Turn) uint64 {
	for number, t := range w.saved {
		if t.Value = 0; t == tag {
			return number
		}
	}
	return 0
}

func (w *world) change() {
	if t := w.one(); t != nil {
		w.move(t, func() {
			t.Status = []record.Status{record.StatusPending, record.StatusScheduled, record.StatusBlocked, record.StatusCompleted, record.StatusFailed}[w.dice(5)]
			t.Priority = int32(w.dice(3))
			o := *t.Opts()
			o.ShareKey = w.shareKey()
			t.SetOptions(o)
			if t.Attempts == t.MaxAttempts {
				t.Attempts = 0 // no task waits that has no attempt left
			}
		})
	}
}

func (w *world) remove() {
	t := w.one()
	if t == nil {
		return
	}
	ts := w.types.Named(t.Type)
	w.types.Leave(ts, t)
	delete(w.tasks, t.ID)
	w.types.Arrange(ts, t, w, w, w.now)
	w.forget(ts)
}

// forget forgets the type if nothing is left of it.
func (w *world) forget(ts *Type) {
	for _, t := range w.tasks {
		if t.Type == ts.name {
			return
		}
	}
	if ts.Record() == nil && !ts.HasSaved() {
		maps.DeleteFunc(w.weights, func(share record.Turn, _ int32) bool { return share.Type == ts.name })
		w.types.Forget(ts)
	}
}

// room returns how many tasks claims could take of the type; fewer if shares close before.
func (w *world) room(ts *Type) int64 { return ts.room(int64(ts.ready), w.now) }

func (w *world) set() {
	name := string(rune('a' + w.dice(3)))
	ts, r := w.typeOf(name), w.limit[name]
	if w.fair && w.dice(8) > 0 {
		w.limitTo(ts, r, record.TypeSettings{MaxClaimedPerKey: int32(w.dice(3)), Fair: true})
		return
	}
	w.limitTo(ts, r, record.TypeSettings{Paused: w.dice(3) == 0, MaxClaimed: int32(w.dice(3)), RateLimit: int64(w.dice(3)) * record.Million, MaxClaimedPerKey: int32(w.dice(3)), Fair: w.dice(2) > 0, RateLimitPerKey: int64(w.dice(3)) * record.Million})
}

// limitTo gives the type, whose record is r, the settings.
func (w *world) limitTo(ts *Type, r *record.TaskType, settings record.TypeSettings) {
	name := ts.name
	for at, of := range w.shares {
		if at[0] == name && of.Settings.RateLimit == 0 {
			changed := *of
			changed.SetRate(w.settings(name).RateLimitPerKey, settings.RateLimitPerKey, w.now)
			w.save(name, at[1], changed)
		}
	}
	if settings == (record.TypeSettings{}) {
		r = nil
		delete(w.limit, name)
	} else {
		if r == nil {
			r = &record.TaskType{Name: name}
			w.limit[name] = r
		}
		r.SetRate(settings.RateLimit, w.now)
		r.Settings = settings
	}
	w.types.TakeNoted()
	w.types.SetRecord(ts, r, w, w.now)
	if noted := w.types.TakeNoted(); len(noted) > 0 != (w.room(ts) > 0) || len(noted) > 0 && int64(noted[0].Count) != w.room(ts) {
		w.t.Fatalf("%+v lets %d tasks be claimed, noted is %v", settings, w.room(ts), noted)
	}
	w.forget(ts)
}

// wait lets time go on. What opens is told.
func (w *world) wait() {
	w.now += int64(w.dice(1500))
	due, _, _ := w.types.Openings(w.now)
	w.types.TakeNoted()
	w.types.OpenDue(w, w.now)
	for {
		ts, key, ok := w.types.FullBucket(w.now)
		if !ok {
			break
		}
		saved, _, rate := w.share(ts.name, key)
		if saved.SpentAt(rate, w.now) > 0 {
			w.t.Fatalf("the bucket of share %q, %+v, is full at %d", key, saved, w.now)
		}
		saved.Spent, saved.SpentT = 0, 0
		w.save(ts.name, key, saved)
		w.types.ArrangeFull(ts, w, w.now)
	}
	if told := w.types.TakeNoted(); len(told) != len(due) {
		w.t.Fatalf("%v opened, %v were due", told, due)
	}
}

// check compares all that there is with what the tasks and the settings say.
func (w *world) check() error {
	var all []*record.Task
	var openings []opening
	for at, ts := range w.types.stale {
		if ts.stale != at+1 || w.types.byName[ts.name] != ts {
			return fmt.Errorf("stale type %q is at %d, not %d, or forgotten", ts.name, at+1, ts.stale)
		}
	}
	bytes := int64(0)
	for name, ts := range w.types.byName {
		var ready, full []*record.Task
		behind, groups, claimed := []uint64{}, map[string][]uint64{}, int64(0)
		shares := map[string][]*record.Task{"": nil} // the claimable tasks by share key
		for _, id := range slices.Sorted(maps.Keys(w.tasks)) {
			t := w.tasks[id]
			if t.Type != name {
				continue
			}
			if group := record.GroupOf(t); group != "" {
				groups[group] = append(groups[group], id)
			}
			switch {
			case t.Status == record.StatusClaimed:
				claimed++
				shares[t.Opts().ShareKey] = append(shares[t.Opts().ShareKey], []*record.Task{}...)
			case t.Status == record.StatusPending && w.isBehind(t):
				behind = append(behind, id)
				if by := w.tasks[ts.BehindWhom(t)]; ts.Leads(t) || by == nil || record.GroupOf(by) != record.GroupOf(t) || by.ID >= id && by.Status != record.StatusClaimed {
					return fmt.Errorf("task %d is behind %+v", id, by)
				}
			case t.Status == record.StatusPending:
				if w.isFull(t) {
					full = append(full, t)
				} else {
					ready = append(ready, t)
				}
				shares[t.Opts().ShareKey] = append(shares[t.Opts().ShareKey], t)
				if !ts.Leads(t) || ts.BehindWhom(t) != 0 {
					return fmt.Errorf("task %d is behind task %d", id, ts.BehindWhom(t))
				}
			}
		}
		if got := append([]uint64{}, ts.behind.Keys()...); !slices.Equal(got, behind) || ts.claimed != claimed || len(groups) != len(ts.groups) {
			return fmt.Errorf("type %q has %d claimed, %v behind, %d groups, want %d, %v, %d", name, ts.claimed, got, len(ts.groups), claimed, behind, len(groups))
		}
		for group, ids := range groups {
			bytes += record.BytesOfGroup(group)
			if g := ts.groups[group]; g == nil || !slices.Equal(g.ids.Keys(), ids) {
				return fmt.Errorf("group %q of type %q does not have the tasks %v", group, name, ids)
			}
		}
		bytes += record.BytesOfType(name, len(ts.queues), levelsOf(shares[""]))
		for at, of := range w.shares {
			if at[0] == name {
				shares[at[1]] = append(shares[at[1]], []*record.Task{}...)
				if _, saved := ts.SavedShare(at[1]); saved != of || of.Spent > 0 && of.SpentAt(ts.ShareRate(at[1]), w.now) == 0 {
					return fmt.Errorf("share %q of type %q is %+v, want %+v with a bucket that is not full", at[1], name, saved, of)
				}
			}
		}
		if w.isFair(name) {
			bytes += int64(len(shares)) * record.FairBytes
		}
		if ts.Shares() != len(shares)-1 {
			return fmt.Errorf("type %q has %d shares, want %d", name, ts.Shares(), len(shares)-1)
		}
		for key, tasks := range shares {
			if err := checkQueues(ts.stockOf(key), tasks); err != nil {
				return fmt.Errorf("share %q of type %q: %w", key, name, err)
			}
			saved, _, _ := w.share(name, key)
			if at := w.opensAt(name, key); key != "" && len(tasks) > 0 && at != 0 && !saved.Settings.Paused && !w.isTaken(tasks[0]) {
				openings = append(openings, opening{at, name, key})
			}
			if key != "" {
				bytes += record.BytesOfShare(key, len(ts.stockOf(key).queues), levelsOf(tasks))
			}
		}
		if ts.ready != len(ready) {
			return fmt.Errorf("%d tasks of type %q are ready, want %d", ts.ready, name, len(ready))
		}
		for o := range orders {
			if id, _ := ts.ranking.first(o); id != firstIn(o, ready) {
				return fmt.Errorf("the first of type %q in order %d is %d, want %d", name, o, id, firstIn(o, ready))
			}
		}
		oldest := slices.Clone(behind)
		for _, t := range slices.Concat(ready, full) {
			oldest = append(oldest, t.ID)
		}
		if len(oldest) > 0 && ts.Oldest() != slices.Min(oldest) || len(oldest) == 0 && ts.Oldest() != 0 {
			return fmt.Errorf("the oldest of type %q is %d, of %v", name, ts.Oldest(), oldest)
		}
		standing, at := ts.standingAt(w.now)
		if ts.standing != standing || ts.opensAt != at {
			return fmt.Errorf("type %q stands at %d until %d, want %d until %d", name, ts.standing, ts.opensAt, standing, at)
		}
		switch standing {
		case open:
			all = append(all, ready...)
		case waits:
			openings = append(openings, opening{at, name, ""})
		}
	}
	slices.SortFunc(openings, func(a, b opening) int {
		return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.name, b.name), cmp.Compare(a.key, b.key))
	})
	if w.types.Bytes() != bytes {
		return fmt.Errorf("types take %d bytes, want %d", w.types.Bytes(), bytes)
	}
	var got []opening
	w.types.openings.Scan(func(o opening) bool {
		got = append(got, o)
		return true
	})
	if !slices.Equal(got, openings) {
		return fmt.Errorf("openings are %v, want %v", got, openings)
	}
	return w.checkFirst(all)
}

// isBehind reports whether a task of its group keeps the pending task from being claimed.
func (w *world) isBehind(t *record.Task) bool {
	for _, other := range w.tasks {
		if group := record.GroupOf(other); group != "" && group == record.GroupOf(t) && other.Type == t.Type &&
			(other.ID < t.ID || other.Status == record.StatusClaimed) {
			return true
		}
	}
	return false
}

// checkFirst compares what comes first of all types with a search; sometimes what is stale
// stays so for longer.
func (w *world) checkFirst(all []*record.Task) error {
	climb := w.dice(2) > 0
	for _, left := range []int32{0, 1, 2, 1000} {
		above := slices.DeleteFunc(slices.Clone(all), func(t *record.Task) bool { return attemptsLeftOf(t) <= left })
		if got := w.types.anyAbove(left, w.now); got != (len(above) > 0) {
			return fmt.Errorf("something with more than %d attempts left: %v, there are %d", left, got, len(above))
		}
		if climb {
			w.types.updateLadder()
			if got := w.types.ladder.count(left); got != len(above) {
				return fmt.Errorf("%d tasks with more than %d attempts left, want %d", got, left, len(above))
			}
		}
		for o := range orders {
			want := firstIn(o, above)
			if id, ok := w.types.ready.first(o); left == 0 && (ok != (len(all) > 0) || id != firstIn(o, all)) {
				return fmt.Errorf("first of any type in order %d is %d, want %d", o, id, firstIn(o, all))
			}
			if id, _ := w.types.ladder.first(left, o); climb && id != want {
				return fmt.Errorf("first with more than %d attempts left in order %d is %d, want %d", left, o, id, want)
			}
		}
	}
	return nil
}

// firstIn returns the id of the first task in the order, or 0.
func firstIn(o order, tasks []*record.Task) uint64 {
	if len(tasks) == 0 {
		return 0
	}
	return slices.MinFunc(tasks, func(a, b *record.Task) int {
		switch o {
		case highest:
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
		case lowest:
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
		case newest:
			return cmp.Compare(b.ID, a.ID)
		}
		return cmp.Compare(a.ID, b.ID)
	}).ID
}

// levelsOf returns how many levels the claimable tasks of a type stand in.
func levelsOf(ready []*record.Task) int {
	type level struct{ left, priority int32 }
	levels := map[level]bool{}
	for _, t := range ready {
		levels[level{attemptsLeftOf(t), t.Priority}] = true
	}
	return len(levels)
}

// checkQueues checks the queues of a share, whose claimable tasks come by id.
func checkQueues(s *stock, ready []*record.Task) error {
	if s.count != len(ready) {
		return fmt.Errorf("%d tasks are claimable, want %d", s.count, len(ready))
	}
	byLeft := map[int32][]*record.Task{}
	for _, t := range ready {
		byLeft[attemptsLeftOf(t)] = append(byLeft[attemptsLeftOf(t)], t)
		above := int64(0)
		for _, other := range ready {
			if other.Priority > t.Priority {
				above++
			}
		}
		for _, other := range ready {
			if other.Priority == t.Priority && other.ID < t.ID {
				above++
			}
		}
		if got := s.ahead(t); got != above {
			return fmt.Errorf("%d tasks are ahead of task %d, want %d", got, t.ID, above)
		}
	}
	var lefts []int32
	for _, q := range s.queues {
		lefts = append(lefts, q.left)
		if q.len() != len(byLeft[q.left]) {
			return fmt.Errorf("%d tasks have %d attempts left, want %d", q.len(), q.left, len(byLeft[q.left]))
		}
		for k, t := range byLeft[q.left] {
			if got := q.at(k); got != t.ID {
				return fmt.Errorf("task %d comes %d-th of %d attempts left, want %d", got, k, q.left, t.ID)
			}
		}
	}
	if want := slices.Sorted(maps.Keys(byLeft)); !slices.Equal(lefts, want) {
		return fmt.Errorf("queues for %v attempts left, want %v", lefts, want)
	}
	return nil
}
