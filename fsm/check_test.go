package fsm

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// mustCheck fails the test if an invariant of the state is broken.
func mustCheck(t testing.TB, m *Machine) {
	t.Helper()
	if err := m.check(); err != nil {
		t.Fatalf("after index %d: %v", m.header.Index, err)
	}
}

// check goes through every invariant of the state, and compares everything
// derived with what the saved records say.
func (m *Machine) check() error {
	for _, check := range []func() error{m.checkTasks, m.checkCounts, m.checkKeys, m.checkTimes, m.checkGone, m.checkReady, m.checkClaims, m.checkRequests, m.checkNodes, m.checkSchedules, m.checkBytes, m.checkTrail, m.checkHoldings, m.checkSteps, m.checkTurns, m.checkShares} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkTurns compares the saved tags and clocks with the shares of fair types that have claimable
// tasks, and holds the tags against the clocks.
func (m *Machine) checkTurns() error {
	want := map[record.Turn]bool{}
	for _, t := range m.tasks.All() {
		if t.Status != record.StatusPending || !m.types.settingsOf(t.Type).Fair || !m.types.named(t.Type).Leads(t) {
			continue
		}
		tag := turnOf(t)
		want[tag], want[clockOf(tag)] = true, true
		value, _ := m.tagPlainly(tag)
		now, _ := m.tagPlainly(clockOf(tag))
		if closed, _ := m.isShareClosed(t); !closed && value-now > m.turnPlainly(tag) {
			return fmt.Errorf("tag %+v is %d behind its clock", tag, value-now)
		}
	}
	for number, turn := range m.turns.table.All() {
		of := *turn
		of.Value = 0
		if number == 0 || !want[of] || turn.Clock && turn.Value == 0 || !turn.Clock && turn.Value == m.turnPlainly(of) {
			return fmt.Errorf("turn %d is %+v: it is a second one, a first value, or no share waits", number, *turn)
		}
		delete(want, of)
	}
	return nil
}

// checkShares compares what is saved of shares with what is derived of it.
func (m *Machine) checkShares() error {
	seen, set := map[shareName]bool{}, 0
	for number, of := range m.shares.table.All() {
		ts := m.types.named(of.Type)
		if ts == nil || of.Key == "" || of.IsNothing() || seen[shareName{of.Type, of.Key}] {
			return fmt.Errorf("share %d is %+v", number, *of)
		}
		seen[shareName{of.Type, of.Key}] = true
		if at, saved := ts.SavedShare(of.Key); at != number || saved != of {
			return fmt.Errorf("share %d, %+v, is known as %d, %+v", number, *of, at, saved)
		}
		if of.Settings != (record.ShareSettings{}) {
			set++
		}
		rate := ts.ShareRate(of.Key)
		switch capacity := max(1_000_000_000, 1000*rate); {
		case of.Spent < 0, of.Spent > capacity, of.Spent > 0 && rate == 0, of.SpentT > m.header.Stamp.T:
			return fmt.Errorf("the bucket of share %d lacks %d of %d since %d", number, of.Spent, capacity, of.SpentT)
		}
	}
	if set != m.shares.set {
		return fmt.Errorf("%d shares have settings, counted are %d", set, m.shares.set)
	}
	return nil
}

func (m *Machine) checkTasks() error {
	tokens := map[uint64]uint64{}
	n, last := 0, uint64(0)
	for id, t := range m.tasks.All() {
		n++
		if t.ID != id || id <= last || id >= m.header.NextID || !reflect.DeepEqual(m.Get(id), t) {
			return fmt.Errorf("task %d is at place %d, after %d", t.ID, id, last)
		}
		if problem := m.problemOf(t); problem != "" {
			return fmt.Errorf("task %d %s: %+v", id, problem, *t)
		}
		claims := t.Claims()
		for i, a := range claims {
			open := a.Outcome == record.OutcomeNone
			if open != (t.Status == record.StatusClaimed && i == len(claims)-1) || open != (a.EndedAt == 0) {
				return fmt.Errorf("task %d is %v, its claims %+v", id, t.Status, claims)
			}
			if other, taken := tokens[a.Token]; taken || a.Token >= m.header.NextToken || i > 0 && a.Token <= claims[i-1].Token {
				return fmt.Errorf("task %d has token %d in its log, task %d too", id, a.Token, other)
			}
			tokens[a.Token] = id
		}
		if token := finalizationToken(t); token != 0 {
			if other, taken := tokens[token]; taken || token >= m.header.NextToken {
				return fmt.Errorf("task %d was finalized with token %d, task %d had it", id, token, other)
			}
			tokens[token] = id
		}
		last = id
	}
	if n != m.tasks.Len() {
		return fmt.Errorf("%d tasks counted, there are %d", m.tasks.Len(), n)
	}
	return nil
}

// problemOf returns what is wrong with the fields of the task, "" if nothing is.
func (m *Machine) problemOf(t *record.Task) string {
	waits := t.Status == record.StatusPending || t.Status == record.StatusScheduled || t.Status == record.StatusBlocked
	o := t.Opts()
	parent := o.Parent != nil
	switch {
	case t.Status == record.StatusBlocked && o.Step == nil && !t.LacksSignal() || parent != (t.Status == record.StatusRunning) && !(parent && t.Status.Ended()):
		return "has a status of tasks with steps, or as if it had none"
	case (t.Status == record.StatusClaimed) != (t.LeaseSeq > 0) || (t.LeaseSeq > 0) != (t.ClaimLeaseMS > 0) || t.LeaseSeq == 0 && t.LeaseEndU != 0:
		return "has a lease without a claim, or a claim without"
	case waits && (t.Token != 0 || t.WorkerID != "" || t.CancelRequested):
		return "waits with traces of a claim"
	case !waits && !parent && t.Token != lastToken(t.Claims()):
		return "has not its last claim's token"
	case (t.Status == record.StatusClaimed || t.Status == record.StatusCompleted && !parent) && (t.Token == 0 || t.WorkerID == ""):
		return "is claimed or completed by nobody"
	case t.Status == record.StatusCancelled && t.WorkerID != "":
		return "is cancelled by a worker"
	case waits && t.LacksSignal() && t.Status != record.StatusBlocked, o.SignalUntil != 0 && (!t.LacksSignal() || t.Status != record.StatusBlocked), o.Signalled && o.SignalMS == 0:
		return "goes on without its signal, or waits for one that it has"
	case t.Status == record.StatusScheduled && t.RunAt <= 0:
		return "is scheduled without a time"
	case t.Status.Ended() != (t.CompletedAt != 0) || !t.Status.Ended() && t.RemoveAt != 0:
		return "has times of an end without one, or none"
	case t.RemoveAt != 0 && t.RemoveAt <= t.CompletedAt:
		return "is there though it is not to be kept"
	case t.Status != record.StatusCompleted && (t.Then != nil && !movedOn(t) || t.Result != nil || t.ResultPayload != nil):
		return "has results without being completed"
	case t.MaxAttempts < 0 || t.Attempts < 0 || t.MaxAttempts > 0 && t.Attempts > t.MaxAttempts:
		return "has more attempts than it may"
	case waits && !attemptsLeft(t):
		return "waits without attempts left"
	case len(t.Log) > record.AttemptsLogMax:
		return "remembers too many attempts"
	case t.Options != nil && reflect.ValueOf(*o).IsZero():
		return "has empty options"
	}
	return ""
}

// finalizationToken returns the token of the claim that finalizes the parent, or did, or 0.
func finalizationToken(t *record.Task) uint64 {
	switch p := t.Opts().Parent; {
	case p == nil:
		return 0
	case t.Status != record.StatusRunning:
		return t.Token
	case p.Finalization != nil:
		return p.Finalization.Token
	}
	return 0
}

// lastToken returns the token of the last claim, 0 before the first.
func lastToken(log []record.Attempt) uint64 {
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Token
}

func (m *Machine) checkCounts() error {
	var all [record.StatusCancelled + 1]int64
	types := map[string]*[record.StatusCancelled + 1]int64{}
	for _, r := range m.types.settings {
		types[r.Name] = new([record.StatusCancelled + 1]int64)
	}
	for _, of := range m.shares.table.All() {
		types[of.Type] = new([record.StatusCancelled + 1]int64)
	}
	for _, t := range m.tasks.All() {
		all[t.Status]++
		if types[t.Type] == nil {
			types[t.Type] = new([record.StatusCancelled + 1]int64)
		}
		types[t.Type][t.Status]++
	}
	if all != m.counts {
		return fmt.Errorf("counts are %v, want %v", m.counts, all)
	}
	if len(types) != m.types.Len() {
		return fmt.Errorf("%d types, want %d", m.types.Len(), len(types))
	}
	for name, counts := range types {
		ts := m.types.named(name)
		if ts == nil || ts.counts != *counts {
			return fmt.Errorf("counts of type %q are not %v", name, counts)
		}
		if ts.history != m.histories.of(name) {
			return fmt.Errorf("type %q counts in another history than its own", name)
		}
	}
	if n := len(m.histories.all); n > record.HistoriesMax || n != len(m.histories.byType) {
		return fmt.Errorf("%d histories, %d by type", n, len(m.histories.byType))
	}
	for i, s := range m.histories.all {
		if problem := s.Problem(); problem != "" || (s.Type == "") != (i == 0) || s.Open.At != m.histories.minute || len(s.Minutes) > record.HistoryMinutes+1 {
			return fmt.Errorf("history %d, of type %q: %s; %d minutes, under way %d, not %d", i, s.Type, problem, len(s.Minutes), s.Open.At, m.histories.minute)
		}
	}
	return m.checkWent()
}

// checkWent: a type that went has nothing, and is found by its name and its place.
func (m *Machine) checkWent() (err error) {
	m.types.retired.byName.Scan(func(name string, ts *typeState) bool {
		at, _ := m.types.retired.inOrder.Get(ts.retired)
		if m.types.named(name) != nil || at != ts || ts.Name() != name || ts.tasks != 0 || ts.counts != (typeState{}).counts || ts.Oldest() != 0 {
			err = fmt.Errorf("type %q, which went, has something, or another place", name)
		}
		return err == nil
	})
	if err == nil && m.types.retired.inOrder.Len() != m.types.retired.byName.Len() {
		err = fmt.Errorf("%d retired types have places, want %d", m.types.retired.inOrder.Len(), m.types.retired.byName.Len())
	}
	return err
}

// checkKeys: a key leads to the task that has it: for good, or, if it is taken
// only while the task is active, until that ends. Removed tasks are apart.
func (m *Machine) checkKeys() error {
	keys, goneKeys := map[string]uint64{}, map[string]uint64{}
	over, goneOver := 0, 0 // keys that are free by time, and may be in the index or not
	for id, t := range m.tasks.All() {
		if t.Key == "" {
			if t.Opts().KeyOfType {
				return fmt.Errorf("task %d has no key, of its type", id)
			}
			continue
		}
		if t.Opts().UniqueActive && t.Status.Ended() {
			continue
		}
		if t.Opts().UniqueMS != 0 && t.CreatedAt+t.Opts().UniqueMS <= m.header.Stamp.T {
			over++
			continue
		}
		if other, taken := keys[t.KeyName()]; taken {
			return fmt.Errorf("tasks %d and %d have the key %q", other, id, t.Key)
		}
		keys[t.KeyName()] = id
	}
	for id, t := range m.tasks.All() {
		if all := m.byKeyName(t.Key); m.hasKey(t) && t.Opts().KeyOfType && all != nil && all.Type == t.Type {
			return fmt.Errorf("tasks %d and %d of the type %s have the key %q", all.ID, id, t.Type, t.Key)
		}
	}
	for id, g := range m.gone.table.All() {
		if g.Key == "" {
			continue
		}
		if g.KeyUntil != 0 && g.KeyUntil <= m.header.Stamp.T {
			goneOver++
			continue
		}
		if other, taken := goneKeys[g.KeyName()]; taken {
			return fmt.Errorf("the removed tasks %d and %d have the key %q", other, id, g.Key)
		}
		if holder := m.keyHolder(g.Type, g.Key, true); holder != nil && g.ForgetU > m.header.Stamp.U {
			return fmt.Errorf("task %d has the key %q, the removed task %d is remembered with it", holder.ID, g.Key, id)
		}
		goneKeys[g.KeyName()] = id
	}
	if err := checkNames(m.keys, keys, over); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	if err := checkNames(m.gone.keys, goneKeys, goneOver); err != nil {
		return fmt.Errorf("keys of removed tasks: %w", err)
	}
	return nil
}

// checkNames compares an index of names with where they are to lead. It may have up to more others.
func checkNames(names *index.Names, want map[string]uint64, more int) error {
	for name, id := range want {
		if names.Get(name, func(other uint64) bool { return other == id }) == 0 {
			return fmt.Errorf("%q does not lead to %d", name, id)
		}
	}
	if names.Len() < len(want) || names.Len() > len(want)+more {
		return fmt.Errorf("%d names, want %d", names.Len(), len(want))
	}
	return nil
}

func (m *Machine) checkClaims() error {
	n := 0
	for id, t := range m.tasks.All() {
		if t.Status != record.StatusClaimed {
			continue
		}
		n++
		if ref, ok := m.claims.byToken[t.Token]; !ok || ref.task != id {
			return fmt.Errorf("claim %d of task %d is not in the index", t.Token, id)
		}
	}
	if n != len(m.claims.byToken) || n != m.ClaimCount() {
		return fmt.Errorf("%d claims in the index, want %d", len(m.claims.byToken), n)
	}
	last := uint64(0)
	for l := range m.Leases() {
		if got, ok := m.Lease(l.TaskID); !ok || got != l || l.Token <= last {
			return fmt.Errorf("lease %+v of task %d comes after token %d", l, l.TaskID, last)
		}
		last = l.Token
	}
	return nil
}

func (m *Machine) checkRequests() error {
	n, claims, waiting, refs := 0, 0, 0, 0
	forgetting := map[index.Moment]bool{}
	for moment := range m.requests.forgetting.All() {
		forgetting[moment] = true
	}
	for seq, r := range m.requests.table.All() {
		n++
		claims += len(r.Claims)
		if r.ID == "" || seq >= m.header.NextRequest || len(r.Claims) == 0 || len(r.Claims) >= m.requests.full+1000 {
			return fmt.Errorf("request %d has id %q and %d claims", seq, r.ID, len(r.Claims))
		}
		for _, c := range r.Claims {
			q := claimCall{id: r.ID, place: c.Place}
			if m.requests.find(&q, math.MinInt64); q.seq != seq || len(q.got) == 0 {
				return fmt.Errorf("request %d: place %d of its id %q leads to %d, with %d claims", seq, c.Place, r.ID, q.seq, len(q.got))
			}
		}
		live := int32(0)
		for _, c := range r.Claims {
			ref, ok := m.claims.byToken[c.Token]
			if ok {
				live++
				if ref.request != seq || ref.task != c.TaskID {
					return fmt.Errorf("claim %d of request %d is held as %+v", c.Token, seq, ref)
				}
			}
		}
		refs += int(live)
		if live != r.Live || (live == 0) != (r.ForgetU != 0) {
			return fmt.Errorf("request %d has %d live claims, says %d, is forgotten at %d", seq, live, r.Live, r.ForgetU)
		}
		if live == 0 {
			waiting++
			if !forgetting[index.Moment{At: r.ForgetU, ID: seq}] {
				return fmt.Errorf("request %d will not be forgotten", seq)
			}
		}
	}
	for _, ref := range m.claims.byToken {
		if ref.request != 0 {
			refs--
		}
	}
	if refs != 0 || n != m.requests.ids.Len() || waiting != m.requests.forgetting.Len() || claims != m.requests.claims {
		return fmt.Errorf("%d requests, %d to forget, %d claims, %d unknown: index has %d, %d, %d", n, waiting, claims, -refs, m.requests.ids.Len(), m.requests.forgetting.Len(), m.requests.claims)
	}
	return nil
}

func (m *Machine) checkNodes() error {
	if !slices.IsSortedFunc(m.nodes, func(a, b record.NodeRecord) int { return cmp.Compare(a.UUID, b.UUID) }) {
		return fmt.Errorf("nodes are not sorted: %+v", m.nodes)
	}
	return nil
}

// checkSchedules: each waits for its slot in the index, in the order of slots.
func (m *Machine) checkSchedules() error {
	var waiting []*record.ScheduleView
	for i, v := range m.schedules.all {
		if i > 0 && v.Name <= m.schedules.all[i-1].Name || v.Paused && v.NextRunAt != 0 || m.Schedule(v.Name) != v || v.LastTaskID >= m.header.NextID {
			return fmt.Errorf("schedule %d is %+v", i, *v)
		}
		if v.NextRunAt != 0 {
			waiting = append(waiting, v)
		}
	}
	slices.SortFunc(waiting, func(a, b *record.ScheduleView) int {
		return cmp.Or(cmp.Compare(a.NextRunAt, b.NextRunAt), cmp.Compare(a.Name, b.Name))
	})
	if due := m.DueSchedules(math.MaxInt64, record.SchedulesMax); !slices.Equal(waiting, due) || m.schedules.slots.Len() != len(waiting) {
		return fmt.Errorf("%d of %d schedules wait, want %d", len(due), m.schedules.slots.Len(), len(waiting))
	}
	return nil
}

func (m *Machine) checkBytes() error {
	want, groups := int64(0), map[[2]string]int64{}
	for _, t := range m.tasks.All() {
		want += record.HeldBytes(t)
		if name := record.GroupOf(t); name != "" {
			groups[[2]string{t.Type, name}] = record.BytesOfGroup(name)
		}
	}
	for _, bytes := range groups {
		want += bytes
	}
	want += m.bytesOfTypes()
	for _, r := range m.requests.table.All() {
		want += record.BytesOfRequest(r)
	}
	for _, g := range m.gone.table.All() {
		want += record.BytesOfGone(g)
	}
	for _, v := range m.schedules.all {
		want += record.BytesOfSchedule(v)
	}
	histories := int64(0)
	for _, s := range m.histories.all {
		histories += record.BytesOfHistory(s)
	}
	if m.bytes+m.RememberedBytes()+m.schedules.bytes+m.types.Bytes() != want || m.Bytes() != want+histories+m.trail.Bytes()+bytesOfGaps(&m.tasks)+m.turns.bytes()+m.shares.bytes() {
		return fmt.Errorf("%d bytes are held, want %d", m.bytes+m.RememberedBytes()+m.schedules.bytes+m.types.Bytes(), want)
	}
	return nil
}

// bytesOfTypes returns the estimate for the types without their tasks.
func (m *Machine) bytesOfTypes() (bytes int64) {
	type share struct{ taskType, key string }
	type queue struct {
		share
		left int32
	}
	type level struct {
		queue
		priority int32
	}
	shares, queues, levels := map[share]bool{}, map[queue]bool{}, map[level]bool{}
	for _, t := range m.tasks.All() {
		of := share{t.Type, t.Opts().ShareKey}
		shares[share{taskType: t.Type}] = true
		if t.Status == record.StatusClaimed {
			shares[of] = true
		}
		if ts := m.types.named(t.Type); t.Status == record.StatusPending && ts.Leads(t) {
			left := int32(math.MaxInt32) // a claim asks for 1,000 at most
			if t.MaxAttempts > 0 && t.MaxAttempts-t.Attempts <= command.AttemptsLeftMax {
				left = t.MaxAttempts - t.Attempts
			}
			shares[of] = true
			queues[queue{of, left}] = true
			levels[level{queue{of, left}, t.Priority}] = true
		}
	}
	for _, r := range m.types.settings {
		shares[share{taskType: r.Name}] = true
	}
	for _, of := range m.shares.table.All() {
		shares[share{taskType: of.Type}] = true
		shares[share{of.Type, of.Key}] = true
	}
	for sh := range shares {
		var q, l int
		for of := range queues {
			if of.share == sh {
				q++
			}
		}
		for of := range levels {
			if of.share == sh {
				l++
			}
		}
		if sh.key == "" {
			bytes += record.BytesOfType(sh.taskType, q, l)
			if m.types.settingsOf(sh.taskType).Fair {
				bytes += int64(m.types.named(sh.taskType).Shares()+1) * record.FairBytes
			}
		} else {
			bytes += record.BytesOfShare(sh.key, q, l)
		}
	}
	return bytes
}

// TestMachine_InvariantsHold applies random logs and checks every invariant
// after each entry.
func TestMachine_InvariantsHold(t *testing.T) {
	t.Parallel()
	for seed := range seeds(8) {
		m := newSmall()
		for _, e := range randomLog(seed, 400) {
			mustApplyTo(t, m, e)
			mustCheck(t, m)
		}
	}
}
