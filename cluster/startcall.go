package cluster

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/storage"
)

// callStart is the name of the call by which a node tells others which start of
// its folder this is. Who is asked while it starts answers once it knows its members,
// which no answer is needed for: all nodes may start at once.
const callStart = "start" // start → startAnswer

// ErrOldCopy is returned when another node knows a later start of this node than its
// data folder does.
var ErrOldCopy = errors.New("the data folder is an old copy")

// startAnswer is what a node makes of what it was told.
type startAnswer struct {
	UUID string `json:"uuid"` // who answers
	// Latest is the latest start that the answering node was ever told of: what it
	// was told now, or one that rules that.
	Latest storage.Start `json:"latest"`
	// Whereabouts are the peer addresses that other nodes said they have, by UUID: who
	// has moved may know of few others where they are now.
	Whereabouts map[string]string `json:"whereabouts,omitempty"`
}

// serveStarts answers the calls of nodes that start, as the node self, whose port it
// is.
func serveStarts(port *peer.Port, s *storage.Starts, self string) {
	port.Handle(callStart, func(_ context.Context, from peer.Hello, body []byte) ([]byte, error) {
		told, err := peer.ReadQuestion[storage.Start](body)
		if err != nil {
			return nil, err
		}
		latest, err := s.Note(from.UUID, told)
		if err != nil {
			return nil, err
		}
		return json.Marshal(startAnswer{UUID: self, Latest: latest, Whereabouts: port.Whereabouts().All()})
	})
}
