package door

import (
	"net"
	"time"
)

// deadlineSlack bounds how late a deadline of a client's connection may be.
const deadlineSlack = time.Second

// lazyDeadline is a connection's deadline for reading or for writing. The HTTP server moves deadlines three times per
// request, at the cost of a short system call each, and they hardly ever expire. Moving one is therefore only noted,
// and the actual deadline is set before a read or write unless it is the same or at most deadlineSlack later. On a
// busy connection that happens once a second.
//
// It belongs to the goroutine that serves the connection.
type lazyDeadline struct {
	wanted time.Time // zero = none
	set    time.Time // the actual deadline
}

// apply sets the actual deadline with set, if that is necessary.
func (d *lazyDeadline) apply(set func(net.Conn, time.Time) error, conn net.Conn) error {
	next := d.wanted
	if !next.IsZero() {
		if late := d.set.Sub(next); late >= 0 && late <= deadlineSlack {
			return nil
		}
		next = next.Add(deadlineSlack)
	} else if d.set.IsZero() {
		return nil
	}
	d.set = next
	return set(conn, next)
}

// forget is called when the actual deadline was set otherwise.
func (d *lazyDeadline) forget() { d.set = time.Unix(0, 0) } // long past, but not zero

// SetReadDeadline makes a Read fail from t on, or up to deadlineSlack later. Strangers get less time for a request,
// but as much between two requests.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.known {
		if soon := time.Now().Add(StrangerTimeout); t.After(soon) && t.Before(soon.Add(ReadTimeout-StrangerTimeout+deadlineSlack)) {
			t = soon
		}
	}
	c.reading.wanted = t
	return nil
}

// SetWriteDeadline makes a Write fail from t on, or up to deadlineSlack later.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writing.wanted = t
	return nil
}

// SetDeadline sets the read and write deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	c.reading.wanted, c.writing.wanted = t, t
	return nil
}
