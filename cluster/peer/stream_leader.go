package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/internal/httplog"
	"github.com/claimq/claimq/nodes"
)

// Errors for which an answer does not reach the other node.
var (
	// errCallerGone is the cause with which a request's context ends when its caller, or the
	// node that forwarded it, has left.
	errCallerGone = errors.New("the caller has gone")
	// errNotFetched is returned if the other node does not ask for the rest of an answer in time.
	errNotFetched = errors.New("the other node did not ask for the rest of the answer")
)

// streamCall is a request that another node has forwarded, and the connection that the request's
// handler sees. Fields that are not guarded belong to the goroutine that answers the request.
type streamCall struct {
	net.Conn
	server *streamServer
	stream uint32

	request []byte // as far as it has arrived; until it is answered it belongs to the reader
	refused string // the text of an overload with which it is answered, "" if it is not
	pass    nodes.Passing
	passed  nodes.Passed // what to tell the other node about the answer
	written func()

	// Guarded by the server's mu.
	begun    bool // the request has arrived
	answered bool // the other node may tell whether the answer was delivered
	sent     bool // the answer was sent; only the report of its delivery is missing
	gone     bool // the answer is no longer wanted
	wanted   context.Context
	cancel   context.CancelCauseFunc // of wanted; nil: nothing has asked for it
	more     chan struct{}           // for m; nil: nothing waits for it
}

// Passing returns what the other node has sent with the request.
func (c *streamCall) Passing() nodes.Passing { return c.pass }

// Passed returns what to tell the other node about the answer; the handler fills it in. Delivered is
// called with whether the answer has reached the client, but not if the connection to the other
// node is lost in between.
func (c *streamCall) Passed() *nodes.Passed { return &c.passed }

// OnWritten makes fn be called once the answer is written, or never will be.
func (c *streamCall) OnWritten(fn func()) { c.written = fn }

// Hold tells the other node that the request may be held for wait, and returns a context that ends
// when its answer is no longer wanted.
func (c *streamCall) Hold(wait time.Duration) context.Context {
	ctx := c.want()
	// If that fails, the connection is closed, which ends the context.
	_ = c.server.send(frameHeld, c.stream, binary.BigEndian.AppendUint32(nil, uint32(min(wait.Milliseconds(), 1<<32-1)))...) //nolint:gosec // bounded here
	return ctx
}

// want returns a context that ends when the answer is no longer wanted.
func (c *streamCall) want() context.Context {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.cancel == nil {
		c.wanted, c.cancel = context.WithCancelCause(s.port.ctx)
		if c.gone {
			c.cancel(errCallerGone)
		}
	}
	return c.wanted
}

// leaveLocked notes that the answer is no longer wanted.
func (c *streamCall) leaveLocked() {
	c.gone = true
	if c.cancel != nil {
		c.cancel(errCallerGone)
	}
}

// streamServer answers the streams of one connection.
type streamServer struct {
	*frameConn
	port *Port
	from Hello
	wg   sync.WaitGroup // requests under way

	mu    sync.Mutex
	calls map[uint32]*streamCall
	over  bool // the connection has ended
}

// serveStreams answers the requests on c until it ends, which also ends the callers' contexts. It
// returns when all requests are over, and closes c.
func (p *Port) serveStreams(c *peerConn) {
	s := &streamServer{frameConn: newFrameConn(c), port: p, from: c.other, calls: make(map[uint32]*streamCall)}
	err := s.run()
	_ = c.Close()
	s.mu.Lock()
	s.over = true
	for _, call := range s.calls {
		call.leaveLocked()
		if call.sent || !call.begun {
			s.endLocked(call)
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
	p.log.Debug("peer stream: ended", "node_id", c.other.NodeID, "error", err)
}

func (s *streamServer) run() error {
	for {
		f, err := s.receive()
		if err != nil {
			return err
		}
		switch f.kind {
		case frameRequestPart, frameRequest:
			err = s.take(f)
		case frameCancel, frameMore, frameDelivered, frameUndelivered:
			s.told(f)
		case framePing:
			err = s.send(framePing, 0)
		default:
			err = fmt.Errorf("%w: %q from a follower", errStreamFrame, f.kind)
		}
		if err != nil {
			return err
		}
	}
}

// take adds a part to its request, and starts answering a whole one.
func (s *streamServer) take(f frame) error {
	s.mu.Lock()
	call := s.calls[f.stream]
	if call == nil {
		call = s.openLocked(f.stream)
	}
	taken := call.begun
	call.begun = f.kind == frameRequest
	s.mu.Unlock()
	switch {
	case taken:
		return fmt.Errorf("%w: stream %d is in use", errStreamFrame, f.stream)
	case len(call.request)+len(f.payload) > streamRequestMax:
		return fmt.Errorf("%w: a request over the bound of %s", errStreamFrame, bytesize.Text(streamRequestMax))
	case call.refused != "":
	case call.request == nil:
		call.request = f.payload
	default:
		call.request = append(call.request, f.payload...)
	}
	if f.kind == frameRequestPart {
		return nil
	}
	s.wg.Go(func() { s.answer(call) })
	return nil
}

// openLocked counts a request, or notes with what to refuse it.
func (s *streamServer) openLocked(stream uint32) *streamCall {
	call := &streamCall{Conn: s.conn, server: s, stream: stream}
	switch {
	case !s.port.enterStream():
		call.refused = "shutting_down"
	case s.port.streams.Add(1) > streamsMax:
		s.port.streams.Add(-1)
		s.port.waits.Done()
		call.refused = "overloaded"
	}
	s.calls[stream] = call
	return call
}

// endLocked removes a request, once.
func (s *streamServer) endLocked(call *streamCall) {
	if s.freeLocked(call) {
		s.port.waits.Done()
	}
}

// freeLocked makes a request's number free for another one. If it returns true the caller
// must call p.waits.Done, once the answer is sent: Close waits for that.
func (s *streamServer) freeLocked(call *streamCall) (counted bool) {
	if s.calls[call.stream] != call {
		return false
	}
	delete(s.calls, call.stream)
	if call.cancel != nil {
		call.cancel(nil)
	}
	if call.refused != "" {
		return false
	}
	s.port.streams.Add(-1)
	return true
}

// told handles what the follower reports about a request after sending it. It ignores a request that
// is over.
func (s *streamServer) told(f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls[f.stream]
	switch {
	case call == nil:
	case f.kind == frameCancel:
		call.leaveLocked()
	case f.kind == frameMore && call.more != nil:
		select {
		case call.more <- struct{}{}:
		default:
		}
	case f.kind != frameMore && call.answered:
		delivered := f.kind == frameDelivered
		s.wg.Go(func() { call.passed.Delivered(delivered) }) // it may propose a command
		s.endLocked(call)
	}
}

// answer answers one request.
func (s *streamServer) answer(call *streamCall) {
	ctx := s.port.contexts.Get().(*fasthttp.RequestCtx)
	defer s.port.contexts.Put(ctx)
	ctx.Init2(call, httplog.Logger{Log: s.port.log, Message: "peer port"}, true)
	s.handle(call, ctx)
	s.sendAnswer(call, &ctx.Response)
	ctx.Request.Reset()
	ctx.Response.Reset()
	ctx.ResetUserValues()
	if call.written != nil {
		call.written()
	}
}

// handle makes the answer.
func (s *streamServer) handle(call *streamCall, ctx *fasthttp.RequestCtx) {
	if call.refused != "" {
		answerError(ctx, fasthttp.StatusServiceUnavailable, call.refused, "the leader is shutting down, or as many requests wait there as it takes")
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
		return
	}
	pass, text, err := parsePassing(call.request)
	call.pass, call.request = pass, nil
	if err == nil {
		err = s.port.parseRequest(text, &ctx.Request)
	}
	if err != nil {
		answerBroken(ctx, err)
		return
	}
	s.port.answerForwarded(ctx, s.from)
}

// sendAnswer sends the answer. It ends the request, unless the follower has to report whether the
// answer was delivered.
func (s *streamServer) sendAnswer(call *streamCall, resp *fasthttp.Response) {
	flags, tell := byte(0), call.passed.Delivered != nil
	if call.passed.OpRefused {
		flags |= flagOpRefused
	}
	if tell {
		flags |= flagTell
	}
	buffer := s.port.messages.Get().(*[]byte)
	message := append(newMessage(*buffer), flags)
	if call.passed.GivenUp {
		message[streamHeaderSize] = flagGivenUp
	} else {
		message = appendAnswer(message, resp)
	}
	s.mu.Lock()
	call.answered = tell
	if len(message) > streamHeaderSize+streamPartMax {
		call.more = make(chan struct{}, 1)
	} else if !tell && s.freeLocked(call) { // before the answer, because the number may then be reused
		defer s.port.waits.Done()
	}
	s.mu.Unlock()
	err := s.sendParts(framePart, frameLastPart, call.stream, message, func() error { return s.mayGoOn(call) })
	s.port.putMessage(buffer, message)
	s.mu.Lock()
	defer s.mu.Unlock()
	call.sent = err == nil
	switch {
	case s.calls[call.stream] != call: // it was told
		return
	case err != nil && tell:
		s.wg.Go(func() { call.passed.Delivered(false) })
	case tell && !s.over:
		return
	}
	s.endLocked(call)
}

// mayGoOn waits until the follower wants the parts of an answer after the first.
func (s *streamServer) mayGoOn(call *streamCall) error {
	wanted := call.want()
	timer := time.NewTimer(streamMoreTimeout)
	defer timer.Stop()
	select {
	case <-call.more:
		return nil
	case <-wanted.Done():
		return context.Cause(wanted)
	case <-timer.C:
		return errNotFetched
	}
}

func (p *Port) parseRequest(text []byte, req *fasthttp.Request) error {
	r := p.readers.Get().(*bufio.Reader)
	defer p.readers.Put(r)
	r.Reset(bytes.NewReader(text))
	defer r.Reset(nil)
	return req.ReadLimitBody(r, forwardBodyMax)
}

// putMessage keeps a message's buffer, unless it is large.
func (p *Port) putMessage(buffer *[]byte, message []byte) {
	if cap(message) <= streamPartMax {
		*buffer = message
	}
	p.messages.Put(buffer)
}
