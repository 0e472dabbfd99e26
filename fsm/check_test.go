package fsm

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
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
	for _, check := range []func() error{m.checkTasks, m.checkCounts, m.checkReady, m.checkClaims, m.checkRequests, m.checkTimes, m.checkGone, m.checkNodes, m.checkBytes} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) checkTasks() error {
	tokens := map[uint64]uint64{}
	n, last := 0, uint64(0)
	for id, t := range m.tasks.all() {
		n++
		waits := t.Status == StatusPending || t.Status == StatusScheduled
		switch {
		case t.ID != id || id <= last || id >= m.header.NextID:
			return fmt.Errorf("task %d is at place %d, after %d", t.ID, id, last)
		case (t.Status == StatusClaimed) != (t.LeaseSeq > 0) || (t.LeaseSeq > 0) != (t.ClaimLeaseMS > 0):
			return fmt.Errorf("task %d is %v with lease %d of %d ms", id, t.Status, t.LeaseSeq, t.ClaimLeaseMS)
		case waits && (t.Token != 0 || t.WorkerID != ""):
			return fmt.Errorf("task %d is %v with token %d of %q", id, t.Status, t.Token, t.WorkerID)
		case (t.Status == StatusClaimed || t.Status == StatusCompleted) && (t.Token == 0 || t.WorkerID == "" || len(t.Log) == 0):
			return fmt.Errorf("task %d is %v without a claim", id, t.Status)
		case t.Status == StatusFailed && (t.WorkerID == "") != (t.Error == expiredUnclaimed):
			return fmt.Errorf("task %d failed with %q of %q", id, t.Error, t.WorkerID)
		case t.Status == StatusCancelled && t.WorkerID != "":
			return fmt.Errorf("task %d was cancelled and is of %q", id, t.WorkerID)
		case t.CancelRequested && waits, t.RemoveAt != 0 && !t.Status.Ended():
			return fmt.Errorf("task %d is %v, to be cancelled or removed", id, t.Status)
		case t.Status.Ended() != (t.CompletedAt != 0):
			return fmt.Errorf("task %d is %v, ended at %d", id, t.Status, t.CompletedAt)
		case t.MaxAttempts < 0 || t.Attempts < 0 || t.MaxAttempts > 0 && t.Attempts > t.MaxAttempts:
			return fmt.Errorf("task %d has %d of %d attempts", id, t.Attempts, t.MaxAttempts)
		case waits && !attemptsLeft(t):
			return fmt.Errorf("task %d is %v without attempts left", id, t.Status)
		case len(t.Log) > attemptsLogMax:
			return fmt.Errorf("task %d remembers %d attempts", id, len(t.Log))
		}
		if !waits && lastToken(t.Log) != t.Token {
			return fmt.Errorf("task %d has token %d, its log %v", id, t.Token, t.Log)
		}
		if m.Get(id) != t {
			return fmt.Errorf("task %d is not found", id)
		}
		for i, a := range t.Log {
			open := a.Outcome == OutcomeNone
			if open != (t.Status == StatusClaimed && i == len(t.Log)-1) || open != (a.EndedAt == 0) {
				return fmt.Errorf("task %d is %v, its log %+v", id, t.Status, t.Log)
			}
			if other, taken := tokens[a.Token]; taken || a.Token >= m.header.NextToken || i > 0 && a.Token <= t.Log[i-1].Token {
				return fmt.Errorf("task %d has token %d in its log, task %d too", id, a.Token, other)
			}
			tokens[a.Token] = id
		}
		last = id
	}
	if n != m.tasks.len() {
		return fmt.Errorf("%d tasks counted, there are %d", m.tasks.len(), n)
	}
	return nil
}

// lastToken returns the token of the last claim, 0 if there was none.
func lastToken(log []Attempt) uint64 {
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Token
}

func (m *Machine) checkCounts() error {
	var all [StatusCancelled + 1]int64
	types := map[string]*[StatusCancelled + 1]int64{}
	keys := 0
	for id, t := range m.tasks.all() {
		all[t.Status]++
		if types[t.Type] == nil {
			types[t.Type] = new([StatusCancelled + 1]int64)
		}
		types[t.Type][t.Status]++
		if t.Key != "" && (t.Options == nil || !t.Options.UniqueActive || t.CompletedAt == 0) {
			keys++
			if m.keys[t.Key] != id {
				return fmt.Errorf("key %q leads to task %d, task %d has it", t.Key, m.keys[t.Key], id)
			}
		}
	}
	if all != m.counts {
		return fmt.Errorf("counts are %v, want %v", m.counts, all)
	}
	for _, r := range m.settings {
		if types[r.Name] == nil {
			types[r.Name] = new([StatusCancelled + 1]int64)
		}
	}
	if len(types) != len(m.types) || keys != len(m.keys) {
		return fmt.Errorf("%d types and %d keys, want %d and %d", len(m.types), len(m.keys), len(types), keys)
	}
	for name, counts := range types {
		if m.types[name] == nil || m.types[name].counts != *counts {
			return fmt.Errorf("counts of type %q are not %v", name, counts)
		}
	}
	return nil
}

// firstIn returns the id of the task that comes first, 0 if there is none.
func firstIn(o order, tasks []*Task) uint64 {
	if len(tasks) == 0 {
		return 0
	}
	return slices.MinFunc(tasks, func(a, b *Task) int {
		switch o {
		case orderHighest:
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
		case orderLowest:
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
		case orderNewest:
			return cmp.Compare(b.ID, a.ID)
		}
		return cmp.Compare(a.ID, b.ID)
	}).ID
}

func (m *Machine) checkClaims() error {
	n := 0
	for id, t := range m.tasks.all() {
		if t.Status != StatusClaimed {
			continue
		}
		n++
		if ref, ok := m.claims.Get(t.Token); !ok || ref.task != id {
			return fmt.Errorf("claim %d of task %d is not in the index", t.Token, id)
		}
	}
	if n != m.claims.Len() || n != m.ClaimCount() {
		return fmt.Errorf("%d claims in the index, want %d", m.claims.Len(), n)
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
	for seq, r := range m.requests.all() {
		n++
		claims += len(r.Claims)
		if m.requestIDs[r.ID] != seq || r.ID == "" || seq >= m.header.NextRequest || len(r.Claims) == 0 {
			return fmt.Errorf("request %d has id %q, which leads to %d", seq, r.ID, m.requestIDs[r.ID])
		}
		live := int32(0)
		for _, c := range r.Claims {
			ref, ok := m.claims.Get(c.Token)
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
			if _, ok := m.forgetting.Get(forgetAt{r.ForgetU, seq}); !ok {
				return fmt.Errorf("request %d will not be forgotten", seq)
			}
		}
	}
	m.claims.Scan(func(_ uint64, ref claimRef) bool {
		if ref.request != 0 {
			refs--
		}
		return true
	})
	if refs != 0 || n != len(m.requestIDs) || waiting != m.forgetting.Len() || claims != m.remembered {
		return fmt.Errorf("%d requests, %d to forget, %d claims, %d unknown: index has %d, %d, %d", n, waiting, claims, -refs, len(m.requestIDs), m.forgetting.Len(), m.remembered)
	}
	return nil
}

func (m *Machine) checkNodes() error {
	if !slices.IsSortedFunc(m.nodes, func(a, b NodeRecord) int { return cmp.Compare(a.UUID, b.UUID) }) {
		return fmt.Errorf("nodes are not sorted: %+v", m.nodes)
	}
	return nil
}

func (m *Machine) checkBytes() error {
	want := int64(0)
	for _, t := range m.tasks.all() {
		want += bytesOf(t)
	}
	for _, r := range m.requests.all() {
		want += bytesOfRequest(r)
	}
	for _, g := range m.gone.all() {
		want += bytesOfGone(g)
	}
	if m.Bytes() != want {
		return fmt.Errorf("%d bytes are held, want %d", m.Bytes(), want)
	}
	return nil
}

// TestMachine_InvariantsHold applies random logs and checks every invariant
// after each entry.
func TestMachine_InvariantsHold(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		m := New()
		m.rememberedMax = 12
		for _, e := range randomLog(seed, 400) {
			mustApplyTo(t, m, e)
			mustCheck(t, m)
		}
	}
}
