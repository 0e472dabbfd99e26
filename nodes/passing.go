package nodes

import (
	"context"
	"net/netip"
	"time"
)

// Passing is the information about a client's request that a node sends to the leader with it. The request itself is
// forwarded unchanged. A client cannot say any of this, because it travels outside of the request.
type Passing struct {
	From   netip.Addr    // the client's address; zero: unknown
	Known  bool          // the node knows the request's key, and has counted the request for its rate
	Waited time.Duration // how long the request has waited at the node already

	// Reserve, if not nil, is called with the size of the answer's body before the node reads it into memory. If it
	// returns an error, the answer is dropped.
	Reserve func(n int) error
	// Held, if not nil, is called when the leader may hold the request for wait. From then on the context that it
	// returns says how long the answer is wanted.
	Held func(wait time.Duration) context.Context
}

// Passed is the information that the leader sends with its answer.
type Passed struct {
	GivenUp   bool // the answer was no longer wanted, and nothing was done; there is no answer
	OpRefused bool // an op of the batch was refused
	// Delivered, if not nil, must be called once with whether the answer has reached the client, because the leader
	// releases the claims of one that has not.
	Delivered func(ok bool)
}
