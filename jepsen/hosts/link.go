package hosts

import (
	"cmp"
	"fmt"
	"time"
)

// Clients is the number of the callers' host. The nodes' hosts count from 1.
const Clients = 0

// Everybody stands for all other hosts in links with a limit.
const Everybody = -1

// Link is one direction between two hosts.
type Link struct{ From, To int }

// Quality describes how well a link carries packets. The zero value is a perfect link.
type Quality struct {
	Cut       bool          // nothing arrives
	Loss      float64       // share of packets that do not arrive, 0 to 1
	Delay     time.Duration // each packet takes this much longer
	Jitter    time.Duration // and up to this much more; the order is kept
	Duplicate float64       // share of packets that arrive twice, 0 to 1
	Reorder   float64       // share of packets that the following ones may overtake, 0 to 1

	// Limit is for a link to Everybody: the bytes per second to all others together. The
	// excess waits for up to a second and is lost after that. 0 means no limit.
	Limit int64
}

// with returns the quality of a link with both qualities.
func (q Quality) with(other Quality) Quality {
	return Quality{
		Cut:       q.Cut || other.Cut,
		Loss:      1 - (1-q.Loss)*(1-other.Loss),
		Delay:     q.Delay + other.Delay,
		Jitter:    q.Jitter + other.Jitter,
		Duplicate: max(q.Duplicate, other.Duplicate),
		Reorder:   max(q.Reorder, other.Reorder),
		Limit:     min(cmp.Or(q.Limit, other.Limit), cmp.Or(other.Limit, q.Limit)),
	}
}

func (q Quality) validate() error {
	for _, share := range []float64{q.Loss, q.Duplicate, q.Reorder} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("a share of %v: 0 to 1 are possible", share)
		}
	}
	if q.Delay < 0 || q.Jitter < 0 || q.Limit < 0 {
		return fmt.Errorf("a delay of %v with a jitter of %v and a limit of %d: none may be negative", q.Delay, q.Jitter, q.Limit)
	}
	return nil
}
