package hosts

import "time"

// Clients is the number of the host where the callers are. The nodes' hosts
// count from 1.
const Clients = 0

// Link is the way from one host to another: one direction.
type Link struct{ From, To int }

// Quality says how well a link carries what is sent over it. The zero value is a
// clean link.
type Quality struct {
	Cut       bool          // nothing arrives
	Loss      float64       // share of packets that do not arrive, 0 to 1
	Delay     time.Duration // each packet takes this much longer
	Jitter    time.Duration // and up to this much more; the order is kept
	Duplicate float64       // share of packets that arrive twice, 0 to 1
	Reorder   float64       // share of packets that the following ones may overtake, 0 to 1
}
