package fsm

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// heads returns the ids that claims would take now, in order of submission.
func (h *harness) heads() []uint64 {
	h.t.Helper()
	var ids []uint64
	ready, _ := h.m.claimablePlainly()
	for _, tasks := range ready {
		for _, t := range tasks {
			ids = append(ids, t.ID)
		}
	}
	slices.Sort(ids)
	mustCheck(h.t, h.m)
	return ids
}

func (h *harness) wantHeads(want ...uint64) {
	h.t.Helper()
	if got := h.heads(); !slices.Equal(got, want) {
		h.t.Errorf("claimable are %v, want %v", got, want)
	}
}

// TestGroup_OneAtATimeInOrder ensures that the tasks of a group are claimed one
// at a time in order of submission, whatever their priority, and that groups,
// types, and tasks without a group do not hold each other back.
func TestGroup_OneAtATimeInOrder(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	for i := range 3 {
		h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p"), Group: "a", Priority: int32(i)}) // 1, 5, 9
		h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p"), Group: "b"})                     // 2, 6, 10
		h.submit(1, record.NewTask{Type: "scan", Payload: []byte("p"), Group: "a"})                     // 3, 7, 11
		h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p")})                                 // 4, 8, 12
	}
	h.wantHeads(1, 2, 3, 4, 8, 12)
	for _, order := range []command.ClaimNext{{}, {SortBy: command.SortCreatedAt}, {SortBy: command.SortRandom, Types: []string{"mail", "scan"}}} {
		order.WorkerID, order.Limit = "w1", 100
		claims := h.do(order).Claims
		if len(claims) != 6 {
			t.Fatalf("%d claims, want 6", len(claims))
		}
		h.wantHeads()
		for _, c := range claims {
			h.wantCode(command.Release{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w1"}}, "")
		}
		h.wantHeads(1, 2, 3, 4, 8, 12)
	}
	h.wantCode(command.ClaimTask{ID: 5, WorkerID: "w1"}, CodeTaskNotClaimable)
	h.wantCode(command.ClaimTask{ID: 1, WorkerID: "w1"}, "")
	h.wantCode(command.ClaimTask{ID: 5, WorkerID: "w1"}, CodeTaskNotClaimable)
	h.wantHeads(2, 3, 4, 8, 12)
	h.wantCode(command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w1"}}, "")
	h.wantHeads(2, 3, 4, 5, 8, 12)
}

// TestGroup_HeadThatWaitsHoldsTheOthersBack ensures it for a head that is
// claimed, scheduled, or pending again, and that one that ended lets them on,
// however it ended.
func TestGroup_HeadThatWaitsHoldsTheOthersBack(t *testing.T) {
	t.Parallel()
	hold := command.Hold{ID: 1, WorkerID: "w1"}
	for name, c := range map[string]struct {
		do    []command.Command
		heads []uint64
	}{
		"claimed":          {nil, nil},
		"extended":         {[]command.Command{command.Extend{Hold: hold}}, nil},
		"cancel asked":     {[]command.Command{command.Cancel{ID: 1}}, nil},
		"completed":        {[]command.Command{command.Complete{Hold: hold}}, []uint64{2}},
		"failed for good":  {[]command.Command{command.Fail{Hold: hold, Permanent: true}}, []uint64{2}},
		"failed once":      {[]command.Command{command.Fail{Hold: hold}}, []uint64{1}},
		"expired":          {[]command.Command{command.Expire{Items: []command.Lease{{TaskID: 1, Token: 1, Seq: 1}}}}, []uint64{1}},
		"released":         {[]command.Command{command.Release{Hold: hold}}, []uint64{1}},
		"waits to retry":   {[]command.Command{command.Fail{Hold: hold, RetryIn: true, RetryInMS: 60_000}}, nil},
		"released, waits":  {[]command.Command{command.Release{Hold: hold, DelayMS: 60_000}}, nil},
		"cancelled":        {[]command.Command{command.Release{Hold: hold}, command.Cancel{ID: 1}}, []uint64{2}},
		"waits, cancelled": {[]command.Command{command.Release{Hold: hold, DelayMS: 60_000}, command.Cancel{ID: 1}}, []uint64{2}},
		"waits, retried":   {[]command.Command{command.Release{Hold: hold, DelayMS: 60_000}, command.Retry{ID: 1}}, []uint64{1}},
		"two ended":        {[]command.Command{command.Complete{Hold: hold}, command.Cancel{ID: 2}}, []uint64{3}},
		"one behind ended": {[]command.Command{command.Cancel{ID: 2}, command.Complete{Hold: hold}}, []uint64{3}},
		"deleted":          {[]command.Command{command.Complete{Hold: hold}, command.Delete{ID: 1}}, []uint64{2}},
		"all ended":        {[]command.Command{command.Complete{Hold: hold}, command.Cancel{ID: 2}, command.Cancel{ID: 3}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newLifeHarness(t)
			h.submit(3, record.NewTask{Type: "mail", Payload: []byte("p"), Group: "g", MaxAttempts: 5})
			h.claims("mail", 9, 1)
			for _, do := range c.do {
				h.wantCode(do, "")
			}
			h.wantHeads(c.heads...)
		})
	}
}

// TestGroup_RetriedTaskIsItsHeadAgain ensures that an old task that is pending again comes
// before the younger ones, but not while another one is claimed.
func TestGroup_RetriedTaskIsItsHeadAgain(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(3, record.NewTask{Type: "mail", Payload: []byte("p"), Group: "g", MaxAttempts: 1})
	h.claims("mail", 9, 1)
	h.wantCode(command.Fail{Hold: command.Hold{ID: 1, WorkerID: "w1"}}, "")
	h.wantHeads(2)
	h.wantCode(command.Retry{ID: 1, AddAttempts: 1}, "")
	h.wantHeads(1) // and 2 is behind it
	h.claims("mail", 9, 1)
	h.wantCode(command.Fail{Hold: command.Hold{ID: 1, WorkerID: "w1"}}, "")
	h.claims("mail", 9, 1) // 2
	h.wantCode(command.Retry{ID: 1, AddAttempts: 1}, "")
	h.wantHeads() // 2 is claimed
	h.wantCode(command.ClaimTask{ID: 1, WorkerID: "w1"}, CodeTaskNotClaimable)
	h.wantCode(command.Release{Hold: command.Hold{ID: 2, WorkerID: "w1"}}, "")
	h.wantHeads(1)
}

// TestGroup_ScheduledHeadHoldsBack ensures that a head that was submitted for
// later holds back those behind it until its time has come.
func TestGroup_ScheduledHeadHoldsBack(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p"), Group: "g", DelayMS: 1000})
	h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p"), Group: "g"})
	h.wantHeads()
	h.stamp.T += 1000
	h.do(command.Tick{})
	h.wantHeads(1)
	h.wantCode(command.Patch{ID: 2, SetPriority: true, Priority: 7}, "") // one that is behind
	h.wantCode(command.Patch{ID: 1, SetPriority: true, Priority: -7}, "")
	h.wantHeads(1)
}

// TestGroup_CostsNothingOnceItsTasksHaveEnded ensures that groups are forgotten.
func TestGroup_CostsNothingOnceItsTasksHaveEnded(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(2, record.NewTask{Type: "mail", Payload: []byte("p"), Group: "g"})
	for range 2 {
		c := h.claims("mail", 9, 1)[0]
		h.wantCode(command.Complete{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w1"}}, "")
	}
	if ts := h.m.types.named("mail"); h.m.types.Bytes() != record.BytesOfType("mail", 0, 0) || ts.Oldest() != 0 || ts.Ready() != 0 {
		t.Errorf("left: %+v", ts)
	}
}
