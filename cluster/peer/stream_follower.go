package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// streamGoneTimeout bounds how long a request without a caller waits for the leader's
// answer, which says whether something was done.
const streamGoneTimeout = 10 * time.Second

// errStreamLost is returned for requests whose connection ended before the answer.
var errStreamLost = errors.New("the connection to the leader was lost")

// ForwardWaiting is Forward to the node at addr with that UUID, over the connection that
// all such requests share.
func (p *Port) ForwardWaiting(ctx context.Context, addr, uuid string, req *fasthttp.Request, resp *fasthttp.Response) error {
	var payload bytes.Buffer
	w := bufio.NewWriterSize(&payload, 512)
	if err := writeRequest(w, req); err != nil {
		return fmt.Errorf("forward to %s: %w: %w", addr, nodes.ErrNoLeader, err)
	}
	if payload.Len() > streamRequestMax {
		return p.Forward(ctx, addr, req, resp, nil)
	}
	resp.Reset()
	if !p.enterStream() {
		return fmt.Errorf("forward to %s: %w", addr, nodes.ErrShuttingDown)
	}
	defer p.waits.Done()
	sent, err := p.exchangeStream(ctx, streamTarget{addr: addr, uuid: uuid}, payload.Bytes(), resp)
	switch {
	case err == nil:
		return nil
	case sent:
		resp.Reset()
		return fmt.Errorf("forward to %s: %w: %w", addr, nodes.ErrOutcomeUnknown, err)
	case p.ctx.Err() != nil:
		return fmt.Errorf("forward to %s: %w", addr, nodes.ErrShuttingDown)
	default:
		return fmt.Errorf("forward to %s: %w: %w", addr, nodes.ErrNoLeader, err)
	}
}

// exchangeStream sends a request and reads its answer. sent reports whether the other node
// may have received it.
func (p *Port) exchangeStream(ctx context.Context, to streamTarget, payload []byte, resp *fasthttp.Response) (sent bool, err error) {
	s, wait, err := p.openStream(ctx, to)
	if err != nil {
		return false, err
	}
	if err := s.send(frameRequest, wait.stream, payload); err != nil {
		s.drop(wait)
		return false, err // it was not sent completely, so it was not read
	}
	answer, err := s.await(ctx, wait)
	if err != nil {
		return true, err
	}
	r := p.readers.Get().(*bufio.Reader)
	defer p.readers.Put(r)
	r.Reset(bytes.NewReader(answer))
	defer r.Reset(nil)
	return true, readAnswerBody(r, resp, nil)
}

// streamTarget identifies the node at the other end.
type streamTarget struct{ addr, uuid string }

// streamClient is the connection shared by this node's requests to one node. It is dialed
// for the first of them.
type streamClient struct {
	port  *Port
	to    streamTarget
	ready chan struct{} // closed when dialing has succeeded or failed
	lost  chan struct{} // closed when no more answers will arrive

	// One of these is set before ready is closed.
	*frameConn
	dialErr error

	mu        sync.Mutex             // guards what follows; port.mu may be taken while it is held
	waits     map[uint32]*streamWait // nil once the connection is no longer used
	next      uint32
	idleSince time.Time // when the last stream ended
}

// streamWait is one request waiting for its answer.
type streamWait struct {
	stream uint32
	answer []byte        // what has arrived so far; owned by the reader until done
	done   chan struct{} // closed when the answer is complete
}

// openStream returns a new stream to the node, over the existing connection or a new one.
func (p *Port) openStream(ctx context.Context, to streamTarget) (*streamClient, *streamWait, error) {
	for {
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
}

// streamTo returns the connection to the node, which may still be dialing.
func (p *Port) streamTo(to streamTarget) *streamClient {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.clients[to]; s != nil {
		return s
	}
	s := &streamClient{
		ready: make(chan struct{}), lost: make(chan struct{}), port: p, to: to,
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
	wait := &streamWait{stream: s.next, done: make(chan struct{})}
	s.waits[s.next] = wait
	s.next++
	return wait
}

// drop removes a stream whose answer is no longer wanted.
func (s *streamClient) drop(wait *streamWait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(wait)
}

func (s *streamClient) endLocked(wait *streamWait) {
	if s.waits[wait.stream] == wait {
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
		case framePart, frameLastPart:
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

// take adds a part to its answer.
func (s *streamClient) take(f frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.waits[f.stream]
	if wait == nil {
		return nil // the answer is no longer wanted
	}
	if len(wait.answer)+len(f.payload) > forwardAnswerMax {
		return fmt.Errorf("%w: an answer over the bound of %s", errStreamFrame, bytesize.Text(forwardAnswerMax))
	}
	if wait.answer == nil {
		wait.answer = f.payload
	} else {
		wait.answer = append(wait.answer, f.payload...)
	}
	if f.kind == frameLastPart {
		s.endLocked(wait)
		close(wait.done)
	}
	return nil
}

// await returns the answer. When ctx ends the leader is told, and its answer to that is
// still awaited.
func (s *streamClient) await(ctx context.Context, wait *streamWait) ([]byte, error) {
	select {
	case <-wait.done:
		return wait.answer, nil
	case <-s.lost:
		return s.afterLoss(wait)
	case <-ctx.Done():
	}
	if err := s.send(frameCancel, wait.stream, nil); err != nil {
		s.drop(wait)
		return nil, err
	}
	timer := time.NewTimer(streamGoneTimeout)
	defer timer.Stop()
	select {
	case <-wait.done:
		return wait.answer, nil
	case <-s.lost:
		return s.afterLoss(wait)
	case <-timer.C:
		s.drop(wait)
		return nil, context.Cause(ctx)
	}
}

// afterLoss returns the answer if it was complete before the connection was lost.
func (s *streamClient) afterLoss(wait *streamWait) ([]byte, error) {
	select {
	case <-wait.done:
		return wait.answer, nil
	default:
		return nil, errStreamLost
	}
}

// ping sends pings until the connection ends, and closes a connection that has been idle
// for long.
func (s *streamClient) ping() {
	ticker := time.NewTicker(streamPingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.lost:
			return
		case <-ticker.C:
		}
		if s.retire() || s.send(framePing, 0, nil) != nil {
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
