package repeat

import (
	"net/http"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// The pause between tries is doubled for each, with jitter.
const (
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
)

// RedirectsMax is the number of redirects in a row that are followed without a pause. While
// leadership changes, two nodes may name each other.
const RedirectsMax = 2

// Verdict is the result of one try.
type Verdict int

// The verdicts.
const (
	Settled    Verdict = iota // answered: success, or a refusal that will not change
	Redirected                // nothing was written; another node leads
	Unwritten                 // nothing was written; it may work later or elsewhere
	Unknown                   // it may have been done
)

// Judge returns the verdict on a complete answer that is neither a success nor a redirect to
// the leader, by its status and its code ("" if it is not one of claimq's). An answer without
// a code comes from something in between, and whatever its status is, it says nothing about
// the node behind it.
func Judge(status int, code wire.Code) Verdict {
	switch {
	case code == "", code == wire.CodeOutcomeUnknown, status < 300:
		return Unknown
	case code == wire.CodeInternal: // final: the server logged it
		return Settled
	case status < 500 && status != http.StatusTooManyRequests:
		return Settled
	}
	return Unwritten // 429, and 503 of claimq nodes
}

// Decides reports whether a refusal that settles a call also settles its earlier tries: it
// does when it depends on the request or the state. Other refusals are made before those are
// looked at, or after.
func Decides(status int, code wire.Code) bool {
	return code != "" && status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusInternalServerError
}

// Broken returns the verdict on a try without a complete answer. sent says whether bytes of
// the request may have been sent.
func Broken(sent bool) Verdict {
	if sent {
		return Unknown
	}
	return Unwritten
}

// Action says what to do after a try.
type Action int

// The actions.
const (
	Take   Action = iota // the call is settled
	Follow               // ask the named node at once
	Wait                 // pause, then try again
	GiveUp               // the outcome is unknown, and a repeat might do harm
)

// Call is the state of a call over its tries. The caller sets Mutation and Repeatable.
type Call struct {
	Mutation bool // it may change something, unlike a GET
	// Repeatable means that the server recognizes a repeat (by idempotency key, claim request
	// id or claim token), or that a repeat does no harm.
	Repeatable bool

	// Tries counts calls of Next.
	Tries int
	// Doubted is true if a try may have been carried out, or may still be.
	Doubted bool

	redirects int
}

// Next takes the verdict on a try and returns what to do.
func (c *Call) Next(v Verdict) Action {
	c.Tries++
	switch v {
	case Settled:
		return Take
	case Redirected:
		if c.redirects++; c.redirects <= RedirectsMax {
			return Follow
		}
		c.redirects = 0
	case Unknown:
		if c.Mutation {
			c.Doubted = true
			if !c.Repeatable {
				return GiveUp
			}
		}
	case Unwritten:
	}
	return Wait
}

// Lost takes back a Follow because the named node is of no use. It returns what to do
// instead.
func (c *Call) Lost() Action {
	c.redirects = 0
	return Wait
}

// Pause returns the time to wait before the next try: twice the last pause, less a random
// share of up to a half, plus what the server asks for. random returns a number in [0, n).
func (c *Call) Pause(asked time.Duration, random func(n time.Duration) time.Duration) time.Duration {
	d := pauseMax
	if shift := c.Tries - 1; shift < 6 {
		d = min(pauseMin<<shift, pauseMax)
	}
	d -= random(d/2 + 1)
	return d + max(asked, 0) // added last, so that the random share still keeps clients apart
}
