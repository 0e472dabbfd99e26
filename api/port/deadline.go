package port

import (
	"net"
	"time"
)

// deadlineSlack is how late a deadline of a client's connection may be.
const deadlineSlack = time.Second

// lazyDeadline is a connection's deadline for reading or for writing. The HTTP
// server moves one of the two three times a request, at a price like that of a
// short system call, and hardly ever does anybody wait for it. So moving it only
// notes it, and who is about to read or write sets the connection's own, unless
// that comes at the same time already or at most deadlineSlack later: once a
// second on a busy connection.
//
// It is for the goroutine that serves the connection.
type lazyDeadline struct {
	wanted time.Time // the zero time = none
	set    time.Time // the connection's own
}

// apply sets the connection's own with set, if that is due.
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

// forget is called when somebody else has set the connection's own.
func (d *lazyDeadline) forget() { d.set = time.Unix(0, 0) } // long past, and not none

// SetReadDeadline has a Read from t on fail, or up to deadlineSlack later. A
// stranger's request has less time than others, but as much between two of them.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.known {
		if soon := time.Now().Add(StrangerTimeout); t.After(soon) && t.Before(soon.Add(ReadTimeout-StrangerTimeout+deadlineSlack)) {
			t = soon
		}
	}
	c.reading.wanted = t
	return nil
}

// SetWriteDeadline has a Write from t on fail, or up to deadlineSlack later.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writing.wanted = t
	return nil
}

// SetDeadline is both.
func (c *Conn) SetDeadline(t time.Time) error {
	c.reading.wanted, c.writing.wanted = t, t
	return nil
}
