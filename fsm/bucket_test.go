package fsm

import (
	"math"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// perSecond converts claims a second to the unit of TypeSettings.
func perSecond(claims int64) int64 { return claims * 1_000_000 }

// TestTypeRecord_Bucket ensures that the bucket fills exactly: one second's
// worth, at least one claim, and no more.
func TestTypeRecord_Bucket(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		rate, in      int64 // what is in it at 1000
		at            int64
		want, opensAt int64 // opensAt as seen at `at`
	}{
		{"empty", perSecond(10), 0, 1000, 0, 1100},
		{"one millisecond short", perSecond(10), 0, 1099, 990_000_000, 1100},
		{"one claim", perSecond(10), 0, 1100, record.ClaimUnit, 1100},
		{"full", perSecond(10), 0, 2000, 10 * record.ClaimUnit, 2000},
		{"never more than full", perSecond(10), 0, 99_000, 10 * record.ClaimUnit, 99_000},
		{"a third of a claim a second", 333_333, 0, 4000, 999_999_000, 4001},
		{"slow limits hold one claim", 333_333, 0, 90_000, record.ClaimUnit, 90_000},
		{"the slowest", 1, 0, 1000, 0, 1_000_001_000},
		{"the slowest, nearly there", 1, 0, 1_000_000_999, 999_999_999, 1_000_001_000},
		{"the fastest", math.MaxInt64, 0, 1001, math.MaxInt64, 1001},
		{"the fastest, empty", math.MaxInt64, 0, 1000, 0, 1001},
		{"for ever", perSecond(1), 0, math.MaxInt64, record.ClaimUnit, math.MaxInt64},
		{"no time left", 1, 0, 1000, 0, 1_000_001_000},
		{"before it was filled", perSecond(10), record.ClaimUnit, 500, record.ClaimUnit, 500},
		{"more than it holds", perSecond(1), 9 * record.ClaimUnit, 1000, record.ClaimUnit, 1000},
	} {
		r := &record.TaskType{Settings: record.TypeSettings{RateLimit: c.rate}, Bucket: c.in, BucketT: 1000}
		if got := r.BucketAt(c.at); got != c.want {
			t.Errorf("%s: the bucket holds %d, want %d", c.name, got, c.want)
		}
		if got := r.ClaimableAt(c.at); got != c.opensAt {
			t.Errorf("%s: it opens at %d, want %d", c.name, got, c.opensAt)
		}
	}
	r := &record.TaskType{Settings: record.TypeSettings{RateLimit: 1}, BucketT: math.MaxInt64}
	if got := r.ClaimableAt(math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("at the end of time it opens at %d", got)
	}
}

// TestTypeRecord_BucketDoesNotCareHowOftenItIsLookedAt ensures that taking out
// in between, as a batch that is undone does, neither loses nor gains.
func TestTypeRecord_BucketDoesNotCareHowOftenItIsLookedAt(t *testing.T) {
	t.Parallel()
	often := record.TaskType{Settings: record.TypeSettings{RateLimit: 7_777_777}, Bucket: 12_345, BucketT: 3}
	once := often
	for at := int64(4); at <= 500; at++ {
		often.Bucket, often.BucketT = often.BucketAt(at), at
		if want := once.BucketAt(at); often.Bucket != want {
			t.Fatalf("at %d it holds %d, want %d", at, often.Bucket, want)
		}
	}
}

// TestRateLimit_NewOneStartsFull and is one second's worth.
func TestRateLimit_NewOneStartsFull(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(20, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(5)})
	h.claims("mail", 100, 5)
	h.claims("mail", 1, 0)
	h.stamp.T += 199
	h.claims("mail", 1, 0)
	h.stamp.T++
	h.claims("mail", 100, 1)
	h.stamp.T += 60_000
	h.claims("mail", 100, 5)
}

// TestRateLimit_BelowOnePerSecond ensures that a slow limit lets one claim
// through at a time.
func TestRateLimit_BelowOnePerSecond(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(20, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: 100_000}) // one in 10 s
	h.claims("mail", 100, 1)
	h.stamp.T += 9_999
	h.claims("mail", 100, 0)
	h.stamp.T++
	h.claims("mail", 100, 1)
}

// TestRateLimit_LowerOneClampsTheBucket ensures that what was saved up under a
// higher limit cannot be claimed under the new one, and that the same limit
// set again, or a higher one, brings nothing.
func TestRateLimit_LowerOneClampsTheBucket(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(50, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(10)})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(3)})
	h.claims("mail", 100, 3)
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(3)})
	h.claims("mail", 100, 0)
	h.stamp.T += 500 // half of it was earned at 3 a second
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(10)})
	h.claims("mail", 100, 1)
	h.stamp.T += 50 // the other half, at 10 a second
	h.claims("mail", 100, 1)
	h.set("mail", record.TypeRateLimit, record.TypeSettings{})
	h.claims("mail", 10, 10)
}

// TestRateLimit_ConcernsEveryWayToClaim ensures that a claim by id takes from
// the bucket too, and that a release puts nothing back.
func TestRateLimit_ConcernsEveryWayToClaim(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(5, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(2)})
	h.wantCode(command.ClaimTask{ID: 5, WorkerID: "w1"}, "")
	h.wantCode(command.Release{Hold: command.Hold{ID: 5, WorkerID: "w1"}}, "")
	h.claims("mail", 9, 1)
	h.wantCode(command.ClaimTask{ID: 5, WorkerID: "w1"}, CodeTaskNotClaimable)
	h.wantCode(command.ClaimTask{ID: 1, WorkerID: "w1"}, "") // its own claim: nothing is taken
	if n := len(h.do(command.ClaimNext{WorkerID: "w1", Limit: 9}).Claims); n != 0 {
		t.Errorf("any type: %d claims", n)
	}
	h.stamp.T += 500
	h.wantCode(command.ClaimTask{ID: 5, WorkerID: "w1"}, "")
}

// TestRateLimit_OpensInTheOrderOfTime ensures that types open again when their
// time has come, whatever the entry is about, each by its own limit, and that
// the machine can tell when.
func TestRateLimit_OpensInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	for name, rate := range map[string]int64{"slow": 1, "medium": 2, "fast": 4} {
		h.submit(9, record.NewTask{Type: name, Payload: []byte("p")})
		h.set(name, record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(rate)})
	}
	if at, ok := h.m.NextOpening(); ok {
		t.Errorf("everything is open, the next opening is at %d", at)
	}
	if n := len(h.do(command.ClaimNext{WorkerID: "w1", Limit: 100}).Claims); n != 7 {
		t.Fatalf("%d claims, want 7", n)
	}
	start := h.stamp.T
	for _, step := range []struct {
		after, next int64 // next after this claim
		claims      int
	}{{249, 250, 0}, {250, 500, 1}, {499, 500, 0}, {500, 750, 2}, {1000, 1250, 4}} {
		h.stamp.T = start + step.after
		if got := h.m.Claimable(command.ClaimNext{Limit: 1}, h.stamp); got != (step.claims > 0) {
			t.Errorf("after %d ms: claimable %v", step.after, got)
		}
		if n := len(h.do(command.ClaimNext{WorkerID: "w1", Limit: 100}).Claims); n != step.claims {
			t.Errorf("after %d ms: %d claims, want %d", step.after, n, step.claims)
		}
		if at, ok := h.m.NextOpening(); !ok || at != start+step.next {
			t.Errorf("after %d ms: the next opening is after %d, want %d", step.after, at-start, step.next)
		}
	}
}

// TestNextOpening_IsOnlyOfTypesThatTimeOpens ensures that no claim is woken for a type that
// has nothing to claim, is paused or has enough claims.
func TestNextOpening_IsOnlyOfTypesThatTimeOpens(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(2, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(1)})
	h.claims("mail", 1, 1)
	want := func(want bool) {
		t.Helper()
		if _, ok := h.m.NextOpening(); ok != want {
			t.Errorf("there is an opening: %v, want %v", ok, want)
		}
	}
	want(true)
	h.set("mail", record.TypePaused, record.TypeSettings{Paused: true})
	want(false)
	h.set("mail", record.TypePaused|record.TypeMaxClaimed, record.TypeSettings{MaxClaimed: 1})
	want(false)
	h.set("mail", record.TypeMaxClaimed, record.TypeSettings{})
	want(true)
	h.stamp.T += 1000
	h.do(command.Tick{})
	want(false)
	h.claims("mail", 1, 1)
	want(false) // nothing is left
}

// TestClaimable_GoesByTheClocksOfNow ensures that the bucket of an idle cluster
// fills, and that a claim request is forgotten there.
func TestClaimable_GoesByTheClocksOfNow(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(2, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(1)})
	h.do(command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1, RequestID: "q1"})
	h.do(command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w1"}})
	for _, c := range []command.ClaimNext{
		{Limit: 1},
		{Limit: 1, SortBy: command.SortRandom},
		{Limit: 1, MoreAttempts: 2},
		{Types: []string{"mail"}, Limit: 1},
		{Types: []string{"mail"}, Limit: 1, SortBy: command.SortRandom},
		{Types: []string{"mail"}, Limit: 1, MoreAttempts: 2},
	} {
		for after, want := range map[int64]bool{-5: false, 0: false, 999: false, 1000: true, 2000: true} {
			if got := h.m.Claimable(c, record.Stamp{T: h.stamp.T + after}); got != want {
				t.Errorf("%+v after %d ms: %v", c, after, got)
			}
		}
	}
	again := command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1, RequestID: "q1"}
	for after, want := range map[int64]bool{0: true, rememberMS - 1: true, rememberMS: false} {
		if got := h.m.Claimable(again, record.Stamp{U: h.stamp.U + after, T: h.stamp.T}); got != want {
			t.Errorf("repeat after %d ms: %v", after, got)
		}
	}
}
