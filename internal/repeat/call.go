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

// RedirectsMax is how many redirects in a row are followed without a pause:
// while leadership changes, two nodes may name each other.
const RedirectsMax = 2

// Verdict is what one try came to.
type Verdict int

// The verdicts.
const (
	Settled    Verdict = iota // answered: success, or a refusal that will not change
	Redirected                // nothing was written; another node leads
	Unwritten                 // nothing was written; it may work later or elsewhere
	Unknown                   // it may have been done
)

// Judge returns the verdict on a whole answer that is neither a success nor a redirect to the
// leader: by its status, and its code if it is one of ours ("" if not). Without a code it is
// of something between, which says nothing of the node behind it, whatever its status is.
func Judge(status int, code wire.Code) Verdict {
	switch {
	case code == "", code == wire.CodeOutcomeUnknown, status < 300:
		return Unknown
	case code == wire.CodeInternal: // final: the server logged it
		return Settled
	case status < 500 && status != http.StatusTooManyRequests:
		return Settled
	}
	return Unwritten // 429, and what a node of ours answers with 503
}

// Decides reports whether a refusal by which a call is settled says what earlier tries of it
// did, too: it comes of what the request asks for, or of the state. Others come before that
// is looked at, or after.
func Decides(status int, code wire.Code) bool {
	return code != "" && status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusInternalServerError
}

// Broken returns the verdict on a try without a whole answer. sent says whether
// bytes of the request may have left.
func Broken(sent bool) Verdict {
	if sent {
		return Unknown
	}
	return Unwritten
}

// Action is what to do after a try.
type Action int

// The actions.
const (
	Take   Action = iota // the call is settled
	Follow               // ask the node that was named, at once
	Wait                 // pause, then try again
	GiveUp               // the outcome is unknown, and a repeat might do harm
)

// Call is the state of one call over its tries. Mutation and Repeatable are set
// by the caller.
type Call struct {
	Mutation bool // it may change something, as a GET does not
	// Repeatable says that the server recognizes a repeat (by idempotency key,
	// claim request id or claim token), or that a repeat does no harm.
	Repeatable bool

	// Tries counts Next.
	Tries int
	// Doubted is true if a try may have been done, or may still be.
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

// Lost takes back a Follow: the node that was named is of no use. It returns
// what to do instead.
func (c *Call) Lost() Action {
	c.redirects = 0
	return Wait
}

// Pause returns how long to wait before the next try: twice as long as the last
// time, less a random share of up to a half, and what the server asks for on top.
// random returns a number in [0, n).
func (c *Call) Pause(asked time.Duration, random func(n time.Duration) time.Duration) time.Duration {
	d := pauseMax
	if shift := c.Tries - 1; shift < 6 {
		d = min(pauseMin<<shift, pauseMax)
	}
	d -= random(d/2 + 1)
	return d + max(asked, 0) // the random share is what keeps clients apart
}
