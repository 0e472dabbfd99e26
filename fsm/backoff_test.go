package fsm

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

func TestBackoff_Grows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		b        record.Backoff
		attempts int32
		want     int64
	}{
		{"first attempt", record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 2 * record.Million}, 1, 1000},
		{"doubled three times", record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 2 * record.Million}, 4, 8000},
		{"not above its maximum", record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 2 * record.Million}, 7, 60_000},
		{"after very many attempts", record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 2 * record.Million}, math.MaxInt32, 60_000},
		{"a factor of one stays", record.Backoff{InitialMS: 7, MaxMS: 60_000, Factor: record.Million}, math.MaxInt32, 7},
		{"small delays keep their fractions", record.Backoff{InitialMS: 1, MaxMS: 60_000, Factor: 1_500_000}, 6, 7}, // 7.59
		{"tenths are exact", record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 1_100_000}, 4, 1331},
		{"the largest", record.Backoff{InitialMS: 31_536_000_000, MaxMS: 31_536_000_000, Factor: 1000 * record.Million}, 5, 31_536_000_000},
		{"no attempt counted", record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 2 * record.Million}, 0, 1000},
		{"no overflow", record.Backoff{InitialMS: 1, MaxMS: math.MaxInt64, Factor: math.MaxInt64}, 9, math.MaxInt64},
	} {
		if got := c.b.Delay(1, c.attempts); got != c.want {
			t.Errorf("%s: %d ms, want %d", c.name, got, c.want)
		}
	}
}

// min(max_ms, initial_ms * factor^(attempts-1)), as whole milliseconds.
func TestBackoff_IsTheFormula(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		b := record.Backoff{
			InitialMS: rapid.Int64Range(1, 100_000).Draw(t, "initial"),
			Factor:    rapid.Int64Range(record.Million, 1000*record.Million).Draw(t, "factor"),
		}
		b.MaxMS = b.InitialMS + rapid.Int64Range(0, 86_400_000).Draw(t, "more")
		attempts := rapid.Int32Range(1, 60).Draw(t, "attempts")
		want := big.NewInt(b.InitialMS)
		by := big.NewInt(1)
		for range attempts - 1 {
			want.Mul(want, big.NewInt(b.Factor))
			by.Mul(by, big.NewInt(record.Million))
		}
		want.Quo(want, by)
		if most := big.NewInt(b.MaxMS); want.Cmp(most) > 0 {
			want = most
		}
		if got := b.Delay(1, attempts); got != want.Int64() {
			t.Fatalf("%+v, %d attempts: %d ms, want %v", b, attempts, got, want)
		}
	})
}

func TestBackoff_Jitter(t *testing.T) {
	t.Parallel()
	b := record.Backoff{InitialMS: 1000, MaxMS: 1000, Factor: record.Million, Jitter: 200_000}
	seen := map[int64]bool{}
	least, most := int64(math.MaxInt64), int64(0)
	for id := range uint64(2000) {
		d := b.Delay(id, 3)
		if d != b.Delay(id, 3) {
			t.Fatal("the same attempt waits for another time")
		}
		seen[d], least, most = true, min(least, d), max(most, d)
	}
	if least != 800 || most != 1000 || len(seen) != 201 {
		t.Errorf("%d delays from %d to %d ms, want all 201 from 800 to 1000", len(seen), least, most)
	}
	if b.Delay(1, 1) == b.Delay(1, 2) && b.Delay(2, 1) == b.Delay(2, 2) {
		t.Error("every attempt of a task has the same jitter")
	}
	b.Jitter = record.Million
	for id := range uint64(2000) {
		if d := b.Delay(id, 1); d < 0 || d > 1000 {
			t.Fatalf("with full jitter: %d ms", d)
		}
	}
}

// "Backoff after a fail or an expiry; default the type's, else none: pending
// at once." "retry_in_ms overrides it."
func TestMachine_WaitsBeforeTheNextAttempt(t *testing.T) {
	t.Parallel()
	own := &record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 2 * record.Million}
	ofType := &record.Backoff{InitialMS: 5000, MaxMS: 60_000, Factor: record.Million}
	failing := func(s *story, h command.Hold) { s.must(command.Fail{Hold: h, Error: "no"}) }
	expiring := func(s *story, h command.Hold) {
		l, _ := s.m.Lease(h.ID)
		s.must(command.Expire{Items: []command.Lease{l}})
	}
	for _, c := range []struct {
		name string
		task record.NewTask
		end  func(*story, command.Hold)
		want int64 // how long it waits; 0: pending
	}{
		{"without a backoff", record.NewTask{}, failing, 0},
		{"expired, without a backoff", record.NewTask{}, expiring, 0},
		{"its own", record.NewTask{Backoff: own}, failing, 1000},
		{"expired, its own", record.NewTask{Backoff: own}, expiring, 1000},
		{"its type's", record.NewTask{Type: "slow"}, failing, 5000},
		{"expired, its type's", record.NewTask{Type: "slow"}, expiring, 5000},
		{"its own before its type's", record.NewTask{Type: "slow", Backoff: own}, failing, 1000},
		{"retry_in_ms", record.NewTask{Backoff: own}, func(s *story, h command.Hold) { s.must(command.Fail{Hold: h, RetryIn: true, RetryInMS: 77}) }, 77},
		{"retry_in_ms of 0", record.NewTask{Backoff: own}, func(s *story, h command.Hold) { s.must(command.Fail{Hold: h, RetryIn: true}) }, 0},
		{"a release", record.NewTask{Backoff: own}, func(s *story, h command.Hold) { s.must(command.Release{Hold: h}) }, 0},
		{"a release with a delay", record.NewTask{Backoff: own}, func(s *story, h command.Hold) { s.must(command.Release{Hold: h, DelayMS: 50}) }, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			s.must(command.SetType{Type: "slow", Set: record.TypeBackoff, Settings: record.TypeSettings{Backoff: ofType}})
			id := s.submit(c.task)
			s.wait(10)
			h := s.claim(id)
			s.wait(10)
			c.end(s, h)
			if c.want == 0 {
				s.status(id, record.StatusPending)
				return
			}
			at := s.T + c.want
			if got := s.status(id, record.StatusScheduled); got.RunAt != at || got.Token != 0 || got.WorkerID != "" {
				t.Errorf("the task is %+v, want it to wait until %d", got, at)
			}
			s.due(at)
			s.wait(c.want)
			s.must(command.Tick{})
			s.status(id, record.StatusPending)
		})
	}
}

func TestMachine_FailsForGood(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	b := &record.Backoff{InitialMS: 1000, MaxMS: 1000, Factor: record.Million}
	permanent := s.submit(record.NewTask{Backoff: b})
	s.must(command.Fail{Hold: s.claim(permanent), Error: "never", Permanent: true, RetryIn: true, RetryInMS: 5})
	if got := s.status(permanent, record.StatusFailed); got.Error != "never" || got.WorkerID != "w1" {
		t.Errorf("failed as %+v", got)
	}
	last := s.submit(record.NewTask{Backoff: b, MaxAttempts: 1})
	s.must(command.Fail{Hold: s.claim(last), RetryIn: true, RetryInMS: 5})
	s.status(last, record.StatusFailed)
}
