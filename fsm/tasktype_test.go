package fsm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// newLifeHarness is a harness of a cluster that knows types, groups and limits.
func newLifeHarness(t *testing.T) *harness {
	h := newHarness(t)
	h.do(command.SetLevel{Level: 1})
	return h
}

// set changes settings of a type and returns the outcome.
func (h *harness) set(name string, fields record.TypeFields, s record.TypeSettings) TypeView {
	h.t.Helper()
	r := h.do(command.SetType{Type: name, Set: fields, Settings: s})
	if r.Code != "" || r.Type == nil {
		h.t.Fatalf("set type: %+v", r)
	}
	mustCheck(h.t, h.m)
	return *r.Type
}

// claims claims up to limit tasks of the type and expects want of them.
func (h *harness) claims(name string, limit int32, want int) []Claim {
	h.t.Helper()
	c := command.ClaimNext{WorkerID: "w1", Types: []string{name}, Limit: limit}
	claimable := h.m.Claimable(c, h.stamp)
	claims := h.do(c).Claims
	if len(claims) != want || claimable != (want > 0) {
		h.t.Errorf("%d claims, claimable %v, want %d", len(claims), claimable, want)
	}
	mustCheck(h.t, h.m)
	return claims
}

// wantCode applies the command and wants its refusal.
func (h *harness) wantCode(c command.Command, want Code) Result {
	h.t.Helper()
	r := h.do(c)
	if r.Code != want {
		h.t.Errorf("%+v: %q, want %q", c, r.Code, want)
	}
	mustCheck(h.t, h.m)
	return r
}

// TestSetType_ChangesWhatIsSet and nothing else.
func TestSetType_ChangesWhatIsSet(t *testing.T) {
	t.Parallel()
	all := record.TypeSettings{
		Paused: true, MaxClaimed: 7, RateLimit: 9, LeaseMS: 100, LimitSet: true, MaxAttempts: 5,
		Backoff: &record.Backoff{InitialMS: 1, MaxMS: 2, Factor: 1_000_000}, RetentionMS: record.KeepForever, Queue: "q", DelayMS: 11,
		DeadLetter: "dead", DeadLetterAfter: 3, MaxClaimedPerKey: 2, Fair: true, RateLimitPerKey: 12,
	}
	for field, want := range map[record.TypeFields]record.TypeSettings{
		record.TypePaused:      {Paused: true},
		record.TypeMaxClaimed:  {MaxClaimed: 7},
		record.TypeRateLimit:   {RateLimit: 9},
		record.TypeLease:       {LeaseMS: 100},
		record.TypeMaxAttempts: {LimitSet: true, MaxAttempts: 5},
		record.TypeBackoff:     {Backoff: all.Backoff},
		record.TypeRetention:   {RetentionMS: record.KeepForever},
		record.TypeQueue:       {Queue: "q"},
		record.TypeDelay:       {DelayMS: 11},
		record.TypeDeadLetter:  {DeadLetter: "dead", DeadLetterAfter: 3},
		0:                      {},

		record.TypeMaxClaimedPerKey: {MaxClaimedPerKey: 2},
		record.TypeFair:             {Fair: true},
		record.TypeRateLimitPerKey:  {RateLimitPerKey: 12},
	} {
		h := newLifeHarness(t)
		if diff := cmp.Diff(TypeView{Type: "mail", Settings: want}, h.set("mail", field, all)); diff != "" {
			t.Errorf("field %b (-want +got):\n%s", field, diff)
		}
		if diff := cmp.Diff(want, *h.m.types.settingsOf("mail")); diff != "" {
			t.Errorf("field %b (-want +got):\n%s", field, diff)
		}
		h.set("mail", record.TypeFieldsAll, all)
		view := h.set("mail", field, record.TypeSettings{})
		rest := all
		rest.Change(field, &record.TypeSettings{})
		if diff := cmp.Diff(rest, view.Settings); diff != "" {
			t.Errorf("field %b cleared (-want +got):\n%s", field, diff)
		}
		h.set("mail", record.TypeFieldsAll, record.TypeSettings{})
		if n := h.m.types.Len() + len(h.m.types.settings); n != 0 {
			t.Errorf("field %b: all cleared, %d things are left", field, n)
		}
	}
}

// TestSetType_IsBounded ensures that the number of types with settings is bounded, because
// a snapshot copies them while requests wait.
func TestSetType_IsBounded(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	paused := func(name string, paused bool) command.SetType {
		return command.SetType{Type: name, Set: record.TypePaused, Settings: record.TypeSettings{Paused: paused}}
	}
	for i := range record.TaskTypesMax {
		h.do(paused(fmt.Sprint("type", i), true))
	}
	if r := h.do(paused("one more", true)); r.Code != CodeInvalidRequest {
		t.Errorf("one more: %q", r.Code)
	}
	if r := h.do(paused("one more", false)); r.Code != "" {
		t.Errorf("one that needs no record: %q", r.Code)
	}
	if r := h.do(paused("type7", false)); r.Code != "" {
		t.Errorf("one that is there: %q", r.Code)
	}
	if r := h.do(paused("one more", true)); r.Code != "" || len(h.m.types.settings) != record.TaskTypesMax {
		t.Errorf("one more in the place of one: %q, %d records", r.Code, len(h.m.types.settings))
	}
	mustCheck(t, h.m)
}

// TestPause concerns claims only: what is claimed goes on, what is claimed by
// id is claimed, and other types are not held up.
func TestPause(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(3, record.NewTask{Type: "mail", Payload: []byte("p"), Priority: 9})
	h.submit(1, record.NewTask{Type: "scan", Payload: []byte("p")})
	h.claims("mail", 1, 1)
	h.set("mail", record.TypePaused, record.TypeSettings{Paused: true})
	h.claims("mail", 9, 0)
	both := command.ClaimNext{WorkerID: "w1", Types: []string{"mail", "scan"}, Limit: 9}
	if got := h.do(both).Claims; len(got) != 1 || got[0].Task.Type != "scan" {
		t.Errorf("claimed %+v", got)
	}
	if h.m.Claimable(command.ClaimNext{Limit: 1}, h.stamp) {
		t.Error("something can be claimed of any type")
	}
	h.wantCode(command.Extend{Hold: command.Hold{ID: 1, WorkerID: "w1"}}, "")
	h.wantCode(command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w1"}}, "")
	h.wantCode(command.ClaimTask{ID: 2, WorkerID: "w1"}, "")
	h.set("mail", record.TypePaused, record.TypeSettings{})
	h.claims("mail", 9, 1)
}

// TestMaxClaimed holds within one claim of several, in every order, by id, and
// frees a slot however a claim ends.
func TestMaxClaimed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]command.Command{
		"complete": command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w1"}},
		"fail":     command.Fail{Hold: command.Hold{ID: 1, WorkerID: "w1"}},
		"release":  command.Release{Hold: command.Hold{ID: 1, WorkerID: "w1"}},
		"retry":    command.Retry{ID: 1},
		"expire":   command.Expire{Items: []command.Lease{{TaskID: 1, Token: 1, Seq: 2}}}, // it was extended
	} {
		for _, sortBy := range []command.SortBy{command.SortPriority, command.SortCreatedAt, command.SortRandom} {
			for more := range int32(2) {
				h := newLifeHarness(t)
				for i := range 10 {
					h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p"), Priority: int32(i % 3), MaxAttempts: int32(3 + i%4)})
				}
				h.set("mail", record.TypeMaxClaimed, record.TypeSettings{MaxClaimed: 4})
				h.wantCode(command.ClaimTask{ID: 1, WorkerID: "w1"}, "")
				c := command.ClaimNext{WorkerID: "w1", Types: [][]string{{"mail", "scan"}, nil}[more], Limit: 9, SortBy: sortBy, MoreAttempts: more}
				if got := len(h.do(c).Claims); got != 3 {
					t.Fatalf("%s: %+v claimed %d, want 3", name, c, got)
				}
				mustCheck(t, h.m)
				for id := range uint64(10) {
					if h.m.Get(id+1).Status == record.StatusPending {
						h.wantCode(command.ClaimTask{ID: id + 1, WorkerID: "w1"}, CodeTaskNotClaimable)
					}
				}
				h.wantCode(command.Extend{Hold: command.Hold{ID: 1, WorkerID: "w1"}}, "")
				h.claims("mail", 9, 0)
				h.wantCode(end, "")
				h.claims("mail", 9, 1)
			}
		}
	}
}

// TestMaxClaimed_Lowered below what is claimed only stops new claims.
func TestMaxClaimed_Lowered(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(9, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.claims("mail", 4, 4)
	h.set("mail", record.TypeMaxClaimed, record.TypeSettings{MaxClaimed: 2})
	for id := range uint64(2) {
		h.claims("mail", 1, 0)
		h.wantCode(command.Complete{Hold: command.Hold{ID: id + 1, WorkerID: "w1"}}, "")
	}
	h.claims("mail", 1, 0)
	h.wantCode(command.Complete{Hold: command.Hold{ID: 3, WorkerID: "w1"}}, "")
	h.claims("mail", 9, 1)
	h.set("mail", record.TypeMaxClaimed, record.TypeSettings{})
	h.claims("mail", 9, 4)
}

// TestClaim_LeaseOfTheType is the claim's own, else the task's, else the
// type's at the time of the claim, else the server's.
func TestClaim_LeaseOfTheType(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(2, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p"), LeaseMS: 700})
	h.submit(1, record.NewTask{Type: "scan", Payload: []byte("p")})
	h.set("mail", record.TypeLease, record.TypeSettings{LeaseMS: 5000})
	for id, want := range map[uint64]int64{1: 300, 2: 5000, 3: 700, 4: 30_000} {
		c := command.ClaimTask{ID: id, WorkerID: "w1"}
		if id == 1 {
			c.LeaseMS = 300
		}
		if got := h.do(c).Task.ClaimLeaseMS; got != want {
			t.Errorf("task %d is leased for %d ms, want %d", id, got, want)
		}
	}
}

// TestTypes_WaitCountsFromPending: what was scheduled, or claimed, has not waited until then.
func TestTypes_WaitCountsFromPending(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p"), DelayMS: 100})
	h.stamp.T += 130
	h.do(command.Tick{})
	v, _ := h.m.Type("mail", record.Stamp{T: h.stamp.T + 5})
	if v.Counts[record.StatusPending] != 1 || v.OldestPendingAgeMS != 135 || v.OldestWaitMS != 5 || v.OldestPending != 1 {
		t.Errorf("5 ms after it became pending: %+v", v)
	}
	h.claims("mail", 1, 1)
	h.stamp.T += 1000
	h.do(command.Release{Hold: command.Hold{ID: 1, WorkerID: "w1"}})
	v, _ = h.m.Type("mail", record.Stamp{T: h.stamp.T + 7})
	if v.Counts[record.StatusPending] != 1 || v.OldestPendingAgeMS != 1137 || v.OldestWaitMS != 7 {
		t.Errorf("7 ms after its release: %+v", v)
	}
}

// TestTypes shows types that have tasks or settings, sorted, with the age of
// what was submitted first and waits, even if no claim would find it.
func TestTypes(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.set("video", record.TypeMaxAttempts, record.TypeSettings{LimitSet: true})
	h.submit(1, record.NewTask{Type: "scan", Payload: []byte("p"), Group: "g"})
	h.claims("scan", 1, 1)
	h.stamp.T += 10
	h.submit(1, record.NewTask{Type: "scan", Payload: []byte("p"), Group: "g"}) // behind
	h.stamp.T += 10
	h.submit(2, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.submit(1, record.NewTask{Type: "scan", Payload: []byte("p")})
	h.set("mail", record.TypePaused, record.TypeSettings{Paused: true})
	now := record.Stamp{T: h.stamp.T + 5}
	want := []TypeView{
		{Type: "mail", Settings: record.TypeSettings{Paused: true}, OldestPendingAgeMS: 5, OldestWaitMS: 5, OldestPending: 3},
		{Type: "scan", OldestPendingAgeMS: 15, OldestWaitMS: 15, OldestPending: 2},
		{Type: "video", Settings: record.TypeSettings{LimitSet: true}},
	}
	want[0].Counts[record.StatusPending] = 2
	want[0].SubmittedPerS, want[1].SubmittedPerS = 33_333, 50_000 // 2 and 3 a minute
	want[1].Counts[record.StatusPending], want[1].Counts[record.StatusClaimed] = 2, 1
	if diff := cmp.Diff(want, h.m.Types("", 0, now)); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if v, ok := h.m.Type("scan", now); !ok || cmp.Diff(want[1], v) != "" {
		t.Errorf("type scan is %+v", v)
	}
	if v, ok := h.m.Type("none", now); ok {
		t.Errorf("type none is %+v", v)
	}
	stats := h.m.Stats(now)
	if len(stats.Types) != 2 || stats.OldestPendingAgeMS != 15 {
		t.Errorf("stats are %+v", stats)
	}
}
