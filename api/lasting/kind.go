package lasting

import (
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/nodes"
)

// Kind is a kind of thing that lasts and that a key takes up.
type Kind uint8

// The kinds.
const (
	Connection Kind = iota
	Wait            // a claim or a GET with wait_ms, here or at the leader
	Stream
	kinds
)

// Most is how many of each kind one key may have.
type Most [kinds]int

// named is how answers name what a key has too many of. It is never changed.
var named = [kinds]struct {
	words string
	bound nodes.Bound
}{
	Connection: {"connections", nodes.BoundKeyConnections},
	Wait:       {"waiting requests", nodes.BoundKeyWaits},
	Stream:     {"streams", nodes.BoundKeyStreams},
}

// Refuse is the refusal of one more than a key may have.
func Refuse(what Kind) *refuse.Refusal {
	return refuse.Overloaded(named[what].bound, "The API key has as many "+named[what].words+" as one key may have")
}

// Ended is with what a wait or a stream ends whose key is of no use any more.
type Ended struct {
	Why     keyring.Failure
	Refusal *refuse.Refusal
}

func (e *Ended) Error() string { return e.Refusal.Text }
