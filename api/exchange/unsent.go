package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// If the answer to a claim cannot be written, the task would stay claimed without a worker until its lease ends. If
// the worker sent no claim_request_id, with which it could ask again, the claim is released at once by the node that
// has the worker's connection. The leader's answer to another node names such claims in a header; if that answer
// cannot be written, the leader releases them.
//
// The worker may have learned of the claim from another answer meanwhile, if it sent the same request twice. Only the
// log knows which answer came first, so the release is for the first answer, and does nothing if there was another.
// Below the feature level that has this, nothing is released, and the lease ends by itself.

// HoldsHeaderMax bounds, in bytes, the header that names the claims of an answer. A thousand claims of one worker
// fit; further ones end with their leases.
const HoldsHeaderMax = 15 << 10

// releasesMax bounds the claims that one command releases.
const releasesMax = 1_000

// unsentConn is a connection of the peer port, which reports an answer that could not be written.
type unsentConn interface {
	// OnUnsent calls fn if the answer certainly does not arrive whole.
	OnUnsent(fn func())
}

// unsentBy fills to with the claims of the request's answer.
func (r *Request) unsentBy(to *port.Unsent) {
	key, bad := r.sentKey()
	if bad {
		key = nil
	}
	to.Holds, to.Key, to.Known, to.From = r.Holds, append(to.Key[:0], key...), r.Who != nil, r.Source()
}

// holdUntilSent notes the tasks that a command has claimed without a claim_request_id, so that they are released if
// the answer cannot be written.
func (r *Request) holdUntilSent(cmd command.Command, res *fsm.Result) {
	requestID := ""
	switch c := cmd.(type) {
	case command.ClaimNext:
		requestID = c.RequestID
	case command.ClaimTask:
		requestID = c.RequestID
	case command.Complete:
		if c.Claim != nil {
			requestID = c.Claim.RequestID
		}
	case command.Batch:
		for i := range res.Results {
			r.holdUntilSent(c.Ops[i], &res.Results[i])
		}
	}
	if requestID != "" || res.Repeated {
		return
	}
	for i := range res.Claims {
		c := &res.Claims[i]
		r.Holds = append(r.Holds, command.Hold{ID: c.Task.ID, WorkerID: c.Task.WorkerID, Token: c.Token})
	}
}

// guardAnswer makes sure that the claims of the answer are released if the answer cannot be written.
func (r *Request) guardAnswer() {
	if len(r.Holds) == 0 {
		return
	}
	s := r.Server
	switch conn := r.HTTP.Conn().(type) {
	case *port.Conn:
		r.unsentBy(conn.Unsent())
	case unsentConn:
		var u port.Unsent
		r.unsentBy(&u)
		conn.OnUnsent(func() { s.ReleaseUnsent(&u) })
	}
	if r.Forwarded {
		if text := AppendHolds(nil, r.Holds); len(text) <= HoldsHeaderMax {
			r.HTTP.Response.Header.SetBytesV(HeaderHolds, text)
		}
	}
}

// GiveBack releases the claims of an answer that the caller no longer waits for.
func (r *Request) GiveBack() {
	var u port.Unsent
	r.unsentBy(&u)
	r.Server.ReleaseUnsent(&u)
	r.Holds = nil
}

// sent notes that the previous answer has been written, because a new request came.
func (r *Request) sent() {
	if conn, ok := r.HTTP.Conn().(*port.Conn); ok {
		conn.Answered()
	}
}

// ReleaseUnsent releases claims, here or through the leader, in order. If that fails, they end with their leases.
func (s *Host) ReleaseUnsent(u *port.Unsent) {
	ctx := s.Waits.At(time.Now())
	for part := range slices.Chunk(u.Holds, releasesMax) {
		_, err := s.Node.Propose(ctx, releaseOf(part))
		if errors.Is(err, nodes.ErrNotLeader) {
			err = s.releaseThere(ctx, u, part)
		}
		if err != nil {
			s.Logger.Debug("claims whose answer could not be written were not released", "task_id", part[0].ID, "count", len(part), "error", err)
			return
		}
	}
}

// releaseOf returns the command that releases claims.
func releaseOf(holds []command.Hold) command.Command {
	ops := make([]command.Command, len(holds))
	for i, h := range holds {
		ops[i] = command.Release{Hold: h, Answer: command.FirstAnswer}
	}
	if len(ops) == 1 {
		return ops[0]
	}
	return command.Batch{Ops: ops}
}

// releaseThere makes the leader release some of the claims of u.
func (s *Host) releaseThere(ctx context.Context, u *port.Unsent, holds []command.Hold) error {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	SetForward(req, []byte(fasthttp.MethodPost), []byte(batchPath))
	passKey(req, u.Key, u.Known)
	passSource(req, u.From)
	req.Header.Set(HeaderUnsent, "1")
	req.SetBodyRaw(appendReleases(nil, holds))
	if err := s.Node.Forward(ctx, req, resp, nil); err != nil {
		return err
	}
	if status := resp.StatusCode(); status != fasthttp.StatusOK {
		return fmt.Errorf("the leader answered %d", status)
	}
	return nil
}

// batchPath is the path of the call that releases several claims at once.
const batchPath = "/api/batch"

// appendReleases appends the body of a batch that releases claims. Worker ids need no escapes.
func appendReleases(b []byte, holds []command.Hold) []byte {
	b = jsonout.List(b, `{"ops":`, len(holds), func(b []byte, i int) []byte {
		b = jsonout.UintField(b, `{"op":"release","id":`, holds[i].ID)
		b = jsonout.WordField(b, `,"worker_id":`, holds[i].WorkerID)
		return append(jsonout.UintField(b, `,"claim_token":`, holds[i].Token), '}')
	})
	return append(b, '}')
}

// AppendHolds appends claims as a header's value:
//
//	WORKER=ID.TOKEN,ID.TOKEN;WORKER=ID.TOKEN
//
// in base 36, each number as the difference from the one before it.
func AppendHolds(b []byte, holds []command.Hold) []byte {
	var last command.Hold
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

// ParseHolds parses what AppendHolds wrote, up to the first error.
func ParseHolds(text []byte) (holds []command.Hold) {
	var last command.Hold
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
