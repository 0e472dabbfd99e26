package repeat

import (
	"testing"
	"time"
)

// polled is a row of the table of PollWait.
type polled struct{ left, lease, want time.Duration }

func polledRows() []polled {
	return []polled{
		{5 * time.Second, time.Hour, 5 * time.Second},
		{time.Hour, time.Hour, PollMax},
		{time.Hour, 0, PollMax},
		{time.Hour, 10 * time.Second, 5 * time.Second},
		{time.Hour, 100 * time.Millisecond, time.Second},
		{300 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond},
		{-time.Second, 0, 0},
	}
}

func TestPollWait(t *testing.T) {
	t.Parallel()
	for _, c := range polledRows() {
		if got := PollWait(c.left, c.lease); got != c.want {
			t.Errorf("with %v left and a lease of %v: %v, want %v", c.left, c.lease, got, c.want)
		}
	}
	// The rest of the requested lease after a poll is not scarce.
	for _, lease := range []time.Duration{4 * time.Second, 30 * time.Second, time.Hour} {
		if Scarce(lease-PollWait(time.Hour, lease), lease) {
			t.Errorf("a lease of %v is scarce after one request", lease)
		}
	}
	if !Scarce(time.Second, 5*time.Second) || !Scarce(-time.Second, 100*time.Millisecond) {
		t.Error("what is nearly over is not scarce")
	}
}
