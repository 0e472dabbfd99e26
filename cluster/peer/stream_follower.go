package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// streamGoneTimeout bounds how long a request that the leader holds waits, once its caller has
// gone, for the leader's answer, which says whether something was done.
const streamGoneTimeout = 10 * time.Second

// errStreamLost is returned for requests whose connection ended before the answer.
var errStreamLost = errors.New("the connection to the leader was lost")

// Forward passes req, a client's request, on to the node at addr with that UUID, at most once, and
// fills resp with its answer. pass is sent with the request. ctx ends when the answer is no longer
// wanted. Once the leader holds the request, the context of pass.Held takes its place: when that
// ends the leader is told, answers at once, and that answer is returned like any other. Errors: nodes.ErrNoLeader, or nodes.ErrShuttingDown if this port is closed (nothing was sent);
// nodes.ErrOutcomeUnknown (something may have been sent, and no complete answer arrived). On an
// error resp is empty.
func (p *Port) Forward(ctx context.Context, addr, uuid string, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
	resp.Reset()
	if !p.enterStream() {
		return nodes.Passed{}, fmt.Errorf("forward to %s: %w", addr, nodes.ErrShuttingDown)
	}
	defer p.waits.Done()
	passed, sent, err := p.exchangeStream(ctx, streamTarget{addr: addr, uuid: uuid}, &pass, req, resp)
	switch {
	case err == nil:
		return passed, nil
	case sent:
		resp.Reset()
		err = fmt.Errorf("forward to %s: %w: %w", addr, nodes.ErrOutcomeUnknown, err)
	case p.ctx.Err() != nil:
		err = fmt.Errorf("forward to %s: %w", addr, nodes.ErrShuttingDown)
	default:
		err = fmt.Errorf("forward to %s: %w: %w", addr, nodes.ErrNoLeader, err)
	}
	return nodes.Passed{}, err
}

// exchangeStream sends a request and reads its answer. sent reports whether the other node may have
// received it.
func (p *Port) exchangeStream(ctx context.Context, to streamTarget, pass *nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (passed nodes.Passed, sent bool, err error) {
	s, wait, err := p.openStream(ctx, to)
	if err != nil {
		return passed, false, err
	}
	a := streamAnswer{client: s, wait: wait, reserve: pass.Reserve, resp: resp}
	if err := a.enter(ctx); err != nil {
		s.drop(wait)
		return passed, false, err
	}
	defer a.leave()
	buffer := p.messages.Get().(*[]byte)
	message := appendRequest(appendPassing(newMessage(*buffer), pass), req)
	err = s.sendParts(frameRequestPart, frameRequest, wait.stream, message, nil)
	p.putMessage(buffer, message)
	if err != nil {
		s.drop(wait)
		return passed, false, err // it was not sent completely, so it was not read
	}
	err = a.await(ctx, pass.Held)
	if err != nil || wait.flags&flagTell == 0 {
		s.drop(wait)
	}
	if err != nil {
		a.tell(false)
		return passed, true, err
	}
	passed.GivenUp, passed.OpRefused = wait.flags&flagGivenUp != 0, wait.flags&flagOpRefused != 0
	if wait.flags&flagTell != 0 {
		passed.Delivered = func(ok bool) {
			s.drop(wait)
			a.tell(ok)
		}
	}
	return passed, true, nil
}

// streamTarget identifies the node at the other end.
type streamTarget struct{ addr, uuid string }

// streamClient is the connection shared by this node's requests to one node. It is dialed for the
// first of them.
type streamClient struct {
	port  *Port
	to    streamTarget
	ready chan struct{} // closed when dialing has succeeded or failed
	lost  chan struct{} // closed when no more answers will arrive
	turns chan struct{} // one for each request under way that the leader does not hold, streamsAtOnce

	// One of these is set before ready is closed.
	*frameConn
	dialErr error

	mu        sync.Mutex             // guards what follows; port.mu may be taken while it is held
	waits     map[uint32]*streamWait // nil once the connection is no longer used
	next      uint32
	idleSince time.Time // when the last stream ended
}

// streamWait is one request waiting for its answer. The client's mu guards what the reader sets,
// until whole is true; after that, nothing changes.
type streamWait struct {
	stream uint32
	news   chan struct{} // has one when something below has changed

	held  bool          // the leader may hold the request
	wait  time.Duration // for so long
	flags byte          // of the answer
	some  bool          // the first part has arrived
	whole bool
	text  []byte // the answer as far as it has arrived
}

// openStream returns a new stream to the node, over the existing connection or a new one.
func (p *Port) openStream(ctx context.Context, to streamTarget) (*streamClient, *streamWait, error) {
	for ctx.Err() == nil {
		s := p.streamTo(to)
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-p.ctx.Done():
			return nil, nil, context.Cause(p.ctx)
		}
		if s.dialErr != nil {
			return nil, nil, s.dialErr
		}
		if wait := s.open(); wait != nil {
			return s, wait, nil
		}
		// It was lost in between and removed from the port, so the next one is new.
	}
	return nil, nil, context.Cause(ctx)
}

// streamTo returns the connection to the node, which may still be dialing.
func (p *Port) streamTo(to streamTarget) *streamClient {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.clients[to]; s != nil {
		return s
	}
	s := &streamClient{
		ready: make(chan struct{}), lost: make(chan struct{}), turns: make(chan struct{}, streamsAtOnce), port: p, to: to,
		waits: make(map[uint32]*streamWait), idleSince: time.Now(),
	}
	if p.closed {
		s.dialErr = errStreamLost
		close(s.ready)
		return s
	}
	p.clients[to] = s
	p.wg.Go(s.run)
	return s
}

// run dials and then reads answers until the connection ends.
func (s *streamClient) run() {
	defer s.forget()
	c, err := s.port.dial(s.port.ctx, s.to.addr, PurposeStream, s.to.uuid)
	if err != nil {
		s.dialErr = err
		s.forget() // before others see the error, because they may retry
		close(s.ready)
		return
	}
	s.frameConn = newFrameConn(c)
	close(s.ready)
	var pings sync.WaitGroup
	pings.Go(s.ping)
	err = s.read()
	s.forget()
	_ = c.Close()
	s.mu.Lock()
	s.waits = nil
	s.mu.Unlock()
	close(s.lost)
	pings.Wait()
	s.port.log.Debug("peer stream: ended", "node_id", c.other.NodeID, "error", err)
}

// forget makes the port dial again for the next request.
func (s *streamClient) forget() {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	if s.port.clients[s.to] == s {
		delete(s.port.clients, s.to)
	}
}

// open returns a new stream, or nil if the connection is lost.
func (s *streamClient) open() *streamWait {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits == nil {
		return nil
	}
	for s.waits[s.next] != nil {
		s.next++
	}
	wait := &streamWait{stream: s.next, news: make(chan struct{}, 1)}
	s.waits[s.next] = wait
	s.next++
	return wait
}

// drop removes a stream whose request is over.
func (s *streamClient) drop(wait *streamWait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits[wait.stream] == wait { // s.waits is nil once the connection is lost
		delete(s.waits, wait.stream)
		s.idleSince = time.Now()
	}
}

// read receives answers until the connection ends.
func (s *streamClient) read() error {
	for {
		f, err := s.receive()
		if err != nil {
			return err
		}
		switch f.kind {
		case frameHeld, framePart, frameLastPart:
			err = s.take(f)
		case framePing:
		default:
			err = fmt.Errorf("%w: %q from a leader", errStreamFrame, f.kind)
		}
		if err != nil {
			return err
		}
	}
}

// take notes what the leader sends for a stream.
func (s *streamClient) take(f frame) error {
	s.mu.Lock()
	wait := s.waits[f.stream]
	if wait == nil || wait.whole { // the answer is no longer wanted
		s.mu.Unlock()
		if f.kind == frameLastPart && len(f.payload) > 0 && f.payload[0]&flagTell != 0 {
			// Not here, because while it reads no answers the leader may read nothing either.
			s.port.start(func() { _ = s.send(frameUndelivered, f.stream) })
		}
		return nil
	}
	defer s.mu.Unlock()
	switch {
	case f.kind == frameHeld && len(f.payload) == 4:
		wait.held, wait.wait = true, time.Duration(binary.BigEndian.Uint32(f.payload))*time.Millisecond
	case f.kind == frameHeld || !wait.some && len(f.payload) == 0:
		return fmt.Errorf("%w: %q of %d bytes", errStreamFrame, f.kind, len(f.payload))
	case !wait.some:
		wait.some, wait.flags, wait.text = true, f.payload[0], f.payload[1:]
	case len(wait.text)+len(f.payload) > forwardAnswerMax+forwardHeaderMax:
		return fmt.Errorf("%w: an answer over the bound of %s", errStreamFrame, bytesize.Text(forwardAnswerMax))
	default:
		wait.text = append(wait.text, f.payload...)
	}
	wait.whole = f.kind == frameLastPart
	select {
	case wait.news <- struct{}{}:
	default:
	}
	return nil
}

// streamAnswer is the wait for the answer of a stream.
type streamAnswer struct {
	client  *streamClient
	wait    *streamWait
	reserve func(n int) error
	resp    *fasthttp.Response
	turn    bool // it has one of the client's turns
}

// enter waits for the request's turn to be sent.
func (a *streamAnswer) enter(ctx context.Context) error {
	select {
	case a.client.turns <- struct{}{}:
		a.turn = true
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the answers to %d requests: %w", streamsAtOnce, ended(ctx))
	case <-a.client.lost:
		return errStreamLost
	}
}

// leave ends the request's turn.
func (a *streamAnswer) leave() {
	if a.turn {
		a.turn = false
		<-a.client.turns
	}
}

// await reads the answer. When the answer is no longer wanted the leader is told; if it may hold
// the request, its answer to that is still awaited.
func (a *streamAnswer) await(ctx context.Context, held func(time.Duration) context.Context) error {
	s, wait := a.client, a.wait
	var late *time.Timer
	var over <-chan time.Time
	isHeld, fetched := false, false
	for unwanted := ctx.Done(); ; {
		select {
		case <-wait.news:
		case <-s.lost:
			if s.mu.Lock(); !wait.whole {
				s.mu.Unlock()
				return errStreamLost
			}
			s.mu.Unlock()
		case <-unwanted:
			unwanted = nil
			if err := s.send(frameCancel, wait.stream); err != nil {
				return err
			}
			if !isHeld {
				return ended(ctx)
			}
			late = time.NewTimer(streamGoneTimeout)
			defer late.Stop()
			over = late.C
		case <-over:
			return ended(ctx)
		}
		s.mu.Lock()
		may, holdFor, some, whole := wait.held, wait.wait, wait.some, wait.whole
		s.mu.Unlock()
		if may && !isHeld && held != nil {
			ctx, isHeld = held(holdFor), true
			unwanted = ctx.Done()
			a.leave()
		}
		switch {
		case whole:
			return a.read(fetched)
		case some && !fetched:
			fetched = true
			if err := a.fetch(); err != nil {
				return err
			}
		}
	}
}

// ended returns why ctx has ended.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// fetch asks for the rest of a large answer, if there is memory for it.
func (a *streamAnswer) fetch() error {
	s, wait := a.client, a.wait
	var head fasthttp.ResponseHeader
	s.mu.Lock()
	text := wait.text
	s.mu.Unlock()
	if err := head.Read(bufio.NewReaderSize(bytes.NewReader(text), forwardHeaderMax)); err != nil {
		return fmt.Errorf("read answer: %w", endIsUnexpected(err))
	}
	size := head.ContentLength()
	err := error(nil)
	switch {
	case size < 0:
		err = errNoLength
	case size > forwardAnswerMax:
		err = fasthttp.ErrBodyTooLarge
	case a.reserve != nil:
		err = a.reserve(size)
	}
	if err != nil {
		// If that fails, the connection is closed.
		_ = s.send(frameCancel, wait.stream)
		return fmt.Errorf("read answer of %d bytes: %w", size, err)
	}
	s.mu.Lock()
	wait.text = slices.Grow(wait.text, max(len(text)+size-len(wait.text), 0))
	s.mu.Unlock()
	return s.send(frameMore, wait.stream)
}

// read fills resp with the answer, which has arrived.
func (a *streamAnswer) read(hasRoom bool) error {
	if a.wait.flags&flagGivenUp != 0 {
		return nil
	}
	reserve := a.reserve
	if hasRoom {
		reserve = nil
	}
	r := a.client.port.readers.Get().(*bufio.Reader)
	defer a.client.port.readers.Put(r)
	r.Reset(bytes.NewReader(a.wait.text))
	defer r.Reset(nil)
	a.wait.text = nil
	return readAnswerBody(r, a.resp, reserve)
}

// tell tells the leader whether the answer was delivered, if it wants to know.
func (a *streamAnswer) tell(delivered bool) {
	// The first part of the answer says so. An answer of one part that arrives later is answered by take.
	if !a.wait.some || a.wait.flags&flagTell == 0 {
		return
	}
	kind := byte(frameUndelivered)
	if delivered {
		kind = frameDelivered
	}
	// If that fails, the connection is closed.
	_ = a.client.send(kind, a.wait.stream)
}

// ping sends pings until the connection ends, and closes a connection that has been idle for long.
func (s *streamClient) ping() {
	ticker := time.NewTicker(streamPingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.lost:
			return
		case <-ticker.C:
		}
		if s.retire() || s.send(framePing, 0) != nil {
			_ = s.conn.Close()
			return
		}
	}
}

// retire takes a retired connection, or one that has been idle for long, out of use.
func (s *streamClient) retire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waits) > 0 || !s.conn.retired.Load() && time.Since(s.idleSince) < streamIdleTimeout {
		return false
	}
	s.waits = nil
	s.forget()
	return true
}
