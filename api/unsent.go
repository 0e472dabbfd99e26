package api

import (
	"time"

	"github.com/claimq/claimq/fsm"
)

// A claim whose answer cannot be written would lie idle until its lease ends.
// If the worker sent no claim_request_id it cannot ask for the answer again
// either, so the claim is released at once. This covers requests that reached
// the leader itself.

// holdUntilSent notes the claims of an answer on its connection, which
// releases them if writing the answer fails.
func (r *request) holdUntilSent(requestID string, res *fsm.Result) {
	conn, ok := r.http.Conn().(*countedConn)
	if !ok || requestID != "" || res.Repeated || len(res.Claims) == 0 {
		return
	}
	holds := make([]fsm.Hold, len(res.Claims))
	for i := range res.Claims {
		c := &res.Claims[i]
		holds[i] = fsm.Hold{ID: c.Task.ID, WorkerID: c.Task.WorkerID, Token: c.Token}
	}
	conn.unsent, conn.server = holds, r.server
}

// sent says that the answer before has been written: a new request came.
func (r *request) sent() {
	if conn, ok := r.http.Conn().(*countedConn); ok {
		conn.unsent = nil
	}
}

// Read reads from the connection. Who reads on has written the answer before
// (or has more requests at hand, and leaves the claims to their leases): from
// here on a Write that fails is about something else, such as "100 Continue",
// and the worker has its claims.
func (c *countedConn) Read(b []byte) (int, error) {
	c.unsent = nil
	return c.Conn.Read(b)
}

// Write writes to the connection. If that fails, nobody learns of the claims
// that the answer was about, and they are released before Write returns.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && len(c.unsent) > 0 {
		holds := c.unsent
		c.unsent = nil
		c.server.releaseUnsent(holds)
	}
	return n, err
}

// releaseUnsent releases claims. Where that fails, the lease's end does it.
func (s *Server) releaseUnsent(holds []fsm.Hold) {
	for _, h := range holds {
		if _, err := s.node.Propose(s.waits.at(time.Now()), fsm.Release{Hold: h}); err != nil {
			s.logger.Debug("a claim whose answer could not be written was not released", "task_id", h.ID, "error", err)
			return
		}
	}
}
