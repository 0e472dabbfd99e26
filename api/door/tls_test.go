package door

import (
	"testing"

	"github.com/claimq/claimq/api/conntest"
)

// One handshake too many ends the oldest one only.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	var h handshakes
	conns := make([]closedConn, HandshakesMax+2)
	var ends []func()
	for i := range HandshakesMax {
		ends = append(ends, h.begin(&conns[i]))
	}
	ends[1]() // it ended in time
	for i := HandshakesMax; i < len(conns); i++ {
		ends = append(ends, h.begin(&conns[i]))
	}
	for i := range conns {
		if closed := conns[i].closed; closed != (i == 0) {
			t.Errorf("connection %d: closed %v", i, closed)
		}
	}
	for _, end := range ends {
		end()
	}
	if n := h.conns.Len(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

type closedConn struct {
	conntest.Nop
	closed bool
}

func (c *closedConn) Close() error { c.closed = true; return nil }
