package lasting

import (
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/nodes"
)

// Kind is a kind of long-lived thing that is counted per key.
type Kind uint8

// The kinds.
const (
	Connection Kind = iota
	Wait            // a claim or a GET with wait_ms, here or at the leader
	Stream
	kinds
)

// Most holds the limit per key of each kind.
type Most [kinds]int

// named has the names of the kinds in answers.
var named = [kinds]struct {
	words string
	bound nodes.Bound
}{
	Connection: {"connections", nodes.BoundKeyConnections},
	Wait:       {"waiting requests", nodes.BoundKeyWaits},
	Stream:     {"streams", nodes.BoundKeyStreams},
}

// Refuse returns the refusal of one more than a key may have.
func Refuse(what Kind) *refuse.Refusal {
	return refuse.Overloaded(named[what].bound, "The API key has as many "+named[what].words+" as one key may have")
}

// Ended is the cause with which a wait or a stream ends whose key has become invalid.
type Ended struct {
	Why     keyring.Failure
	Refusal *refuse.Refusal
}

func (e *Ended) Error() string { return e.Refusal.Text }
