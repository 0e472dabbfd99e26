package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// A claim whose answer cannot be written would lie idle until its lease ends.
// If the worker sent no claim_request_id it cannot ask for the answer again
// either, so the claim is released at once: by the node that has the worker's
// connection. The leader's answer to another node names such claims in a header;
// if it cannot be written to that node, the leader releases them.

// holdsHeaderMax bounds the header that names the claims of an answer, in bytes.
// A thousand claims of one worker fit; what does not is left to its leases.
const holdsHeaderMax = 15 << 10

// releasesMax bounds the claims that one command releases.
const releasesMax = 1_000

// unsentConn is a connection of the peer port, which tells of an answer that
// could not be written.
type unsentConn interface {
	// OnUnsent has fn called if the answer certainly does not arrive whole.
	OnUnsent(fn func())
}

// unsent are the claims of an answer that may not arrive, and by whom they were made: a
// leader that asks for keys has nobody else release them.
type unsent struct {
	holds []fsm.Hold
	key   []byte // that the client sent, empty: none
	known bool   // this node knows the key
	from  netip.Addr
}

// unsentBy makes to the claims of the request's answer.
func (r *request) unsentBy(to *unsent) {
	key, bad := r.sentKey()
	if bad {
		key = nil
	}
	to.holds, to.key, to.known, to.from = r.holds, append(to.key[:0], key...), r.who != nil, r.source()
}

// holdUntilSent notes the claims of an answer, to be released if the answer
// cannot be written. requestID is the claim_request_id that they were made with.
// It adds up: each part of an answer that has claims is noted by itself.
func (r *request) holdUntilSent(requestID string, res *fsm.Result) {
	if requestID != "" || res.Repeated {
		return
	}
	for i := range res.Claims {
		c := &res.Claims[i]
		r.holds = append(r.holds, fsm.Hold{ID: c.Task.ID, WorkerID: c.Task.WorkerID, Token: c.Token})
	}
}

// guardAnswer sees to it that the claims of the answer are released if the
// answer cannot be written.
func (r *request) guardAnswer() {
	if len(r.holds) == 0 {
		return
	}
	s := r.server
	switch conn := r.http.Conn().(type) {
	case *countedConn:
		conn.server = s
		r.unsentBy(&conn.unsent)
	case unsentConn:
		var u unsent
		r.unsentBy(&u)
		conn.OnUnsent(func() { s.releaseUnsent(&u) })
	}
	if r.forwarded {
		if text := appendHolds(nil, r.holds); len(text) <= holdsHeaderMax {
			r.http.Response.Header.SetBytesV(headerHolds, text)
		}
	}
}

// giveBack releases the claims of an answer that nobody waits for.
func (r *request) giveBack() {
	var u unsent
	r.unsentBy(&u)
	r.server.releaseUnsent(&u)
	r.holds = nil
}

// sent says that the answer before has been written: a new request came.
func (r *request) sent() {
	if conn, ok := r.http.Conn().(*countedConn); ok {
		conn.unsent.holds = nil
		conn.answerTaken()
		if !conn.known {
			r.server.strangers.answered(conn)
		}
	}
}

// Read reads from the connection. Who reads on has written the answer before
// (or has more requests at hand, and leaves the claims to their leases): from
// here on a Write that fails is about something else, such as "100 Continue",
// and the worker has its claims.
func (c *countedConn) Read(b []byte) (int, error) {
	c.unsent.holds = nil
	c.answerTaken()
	if !c.heard && c.server != nil {
		defer c.endUnasked()()
	}
	if c.tls != nil {
		if err := c.shake(); err != nil {
			return 0, err
		}
	}
	if err := c.reading.apply(net.Conn.SetReadDeadline, c.Conn); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if !c.heard && n > 0 && b[0] == firstByteTLS && c.server != nil && c.server.cfg.TLS == nil {
		return 0, errClientTLS
	}
	c.heard = c.heard || n > 0
	if !c.heard && errors.Is(err, os.ErrDeadlineExceeded) {
		// Some clients open more connections than they use. Nobody asked anything,
		// so nobody is answered: Go's client logs answers that it did not ask for.
		return 0, io.EOF
	}
	if !c.body.take(n) {
		return 0, errBodiesFull
	}
	return n, err
}

// endUnasked ends a Read when the server drains, until stop is called: the HTTP
// server closes the connections between two requests, but waits for those that it
// has not had the first of.
func (c *countedConn) endUnasked() (stop func()) {
	unhook := context.AfterFunc(c.server.serving, func() {
		_ = c.Conn.SetReadDeadline(time.Unix(0, 1)) // it fails if the connection is closed
	})
	return func() {
		if !unhook() {
			c.reading.forget()
		}
	}
}

// Write writes to the connection. If that fails, nobody learns of the claims
// that the answer was about, and they are released before Write returns.
func (c *countedConn) Write(b []byte) (int, error) {
	c.body.answered()
	n, err := c.writePieces(b)
	if err != nil && len(c.unsent.holds) > 0 {
		c.server.releaseUnsent(&c.unsent)
		c.unsent.holds = nil
	}
	return n, err
}

// writePieces writes b, of which the other side must read each piece in time, and
// all of it.
func (c *countedConn) writePieces(b []byte) (n int, err error) {
	var until time.Time // 0: b is one piece, and its deadline is noted
	if len(b) > writePiece {
		until = time.Now().Add(writeTimeout + time.Duration(len(b))*time.Second/writeRate)
	}
	for {
		if err := c.writing.apply(net.Conn.SetWriteDeadline, c.Conn); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[n:min(n+writePiece, len(b))])
		if n += m; err != nil || n == len(b) {
			return n, err
		}
		next := time.Now().Add(writeTimeout)
		if next.After(until) {
			next = until
		}
		c.writing.wanted = next
	}
}

// releaseUnsent releases claims, here or through the leader, in order. Where
// that fails, the lease's end does it.
func (s *Server) releaseUnsent(u *unsent) {
	ctx := s.waits.at(time.Now())
	for part := range slices.Chunk(u.holds, releasesMax) {
		_, err := s.node.Propose(ctx, releaseOf(part))
		if errors.Is(err, fsm.ErrNotLeader) {
			err = s.releaseThere(ctx, u, part)
		}
		if err != nil {
			s.logger.Debug("claims whose answer could not be written were not released", "task_id", part[0].ID, "count", len(part), "error", err)
			return
		}
	}
}

// releaseOf returns the command that releases claims.
func releaseOf(holds []fsm.Hold) fsm.Command {
	ops := make([]fsm.Command, len(holds))
	for i, h := range holds {
		ops[i] = fsm.Release{Hold: h}
	}
	if len(ops) == 1 {
		return ops[0]
	}
	return fsm.Batch{Ops: ops}
}

// releaseThere has the leader release some of the claims of u.
func (s *Server) releaseThere(ctx context.Context, u *unsent, holds []fsm.Hold) error {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	setForward(req, []byte(fasthttp.MethodPost), []byte(batchPath))
	passKey(req, u.key, u.known)
	passSource(req, u.from)
	req.SetBodyRaw(appendReleases(nil, holds))
	if err := s.node.Forward(ctx, req, resp, nil); err != nil {
		return err
	}
	if status := resp.StatusCode(); status != fasthttp.StatusOK {
		return fmt.Errorf("the leader answered %d", status)
	}
	return nil
}

// batchPath is the path of the call that releases several claims at once.
const batchPath = "/api/batch"

// appendReleases appends the body of a batch that releases claims. Nothing in a
// worker id needs an escape.
func appendReleases(b []byte, holds []fsm.Hold) []byte {
	b = append(b, `{"ops":[`...)
	for i, h := range holds {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, `{"op":"release","id":`...), h.ID, 10)
		b = append(append(b, `,"worker_id":"`...), h.WorkerID...)
		b = strconv.AppendUint(append(b, `","claim_token":`...), h.Token, 10)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

// appendHolds appends claims as a header's value:
//
//	WORKER=ID.TOKEN,ID.TOKEN;WORKER=ID.TOKEN
//
// in base 36, each number as the difference from the one before it.
func appendHolds(b []byte, holds []fsm.Hold) []byte {
	var last fsm.Hold
	for i, h := range holds {
		switch {
		case i == 0 || h.WorkerID != last.WorkerID:
			if i > 0 {
				b = append(b, ';')
			}
			b = append(append(b, h.WorkerID...), '=')
		default:
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(h.ID-last.ID), 36)
		b = append(b, '.')
		b = strconv.AppendInt(b, int64(h.Token-last.Token), 36)
		last = h
	}
	return b
}

// parseHolds reads what appendHolds wrote; what it did not write ends it.
func parseHolds(text []byte) (holds []fsm.Hold) {
	var last fsm.Hold
	for group := range bytes.SplitSeq(text, []byte{';'}) {
		worker, claims, _ := bytes.Cut(group, []byte{'='})
		last.WorkerID = string(worker)
		for claim := range bytes.SplitSeq(claims, []byte{','}) {
			id, token, _ := bytes.Cut(claim, []byte{'.'})
			dID, err := strconv.ParseInt(string(id), 36, 64)
			dToken, err2 := strconv.ParseInt(string(token), 36, 64)
			if err != nil || err2 != nil {
				return holds
			}
			last.ID += uint64(dID)
			last.Token += uint64(dToken)
			holds = append(holds, last)
		}
	}
	return holds
}
