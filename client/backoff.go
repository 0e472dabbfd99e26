package client

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Backoff says how long a task waits after an attempt that failed or expired:
// Initial after the first, Factor times as long after each further one, at most
// Max; less a share of up to Jitter, drawn from a hash of task and attempt.
type Backoff struct {
	Initial time.Duration // required, 1 ms to 365 days, but in NoBackoff
	Max     time.Duration // 0: 24 h, or Initial if that is longer
	Factor  float64       // 1 to 1,000, six decimals. 0: 2
	Jitter  float64       // 0 to 1, six decimals
}

// NoBackoff lets a task be claimed again at once, whatever its type and the server say.
var NoBackoff = Backoff{Factor: 1}

func (b *Backoff) check() error {
	switch {
	case b == nil:
		return nil
	case b.Initial == 0 && b.Factor == 0:
		return errors.New("the backoff has no Initial: NoBackoff lets the task be claimed again at once")
	case b.Initial < 0 || b.Max < 0:
		return fmt.Errorf("backoff waits from %v to %v", b.Initial, b.Max)
	case !(b.Factor >= 0 && b.Factor <= math.MaxInt32 && b.Jitter >= 0 && b.Jitter <= math.MaxInt32): // not a number neither
		return fmt.Errorf("backoff has factor %v and jitter %v", b.Factor, b.Jitter)
	}
	return nil
}

// wire is the backoff as it travels, with the six decimals that the server has.
func (b *Backoff) wire() *wire.Backoff {
	if b == nil {
		return nil
	}
	six := func(f float64) float64 { return math.Round(f*1e6) / 1e6 }
	return &wire.Backoff{
		InitialMS: milliseconds(b.Initial), MaxMS: milliseconds(b.Max), Factor: six(b.Factor), Jitter: six(b.Jitter),
	}
}

func backoffFromWire(w *wire.Backoff) *Backoff {
	if w == nil {
		return nil
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return &Backoff{Initial: ms(w.InitialMS), Max: ms(w.MaxMS), Factor: w.Factor, Jitter: w.Jitter}
}
