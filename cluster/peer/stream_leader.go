package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/internal/httplog"
)

// errCallerGone is the cause with which a request's context ends when its caller, or the
// node that forwarded it, has left.
var errCallerGone = errors.New("the caller has gone")

// streamConn is the connection as seen by the handler of a stream's request. The handler
// can get the caller's context, and register what to do if the answer does not reach the
// other node. One goroutine uses it.
type streamConn struct {
	net.Conn
	caller context.Context
	unsent func()
	// written is called once the answer is sent, or never will be.
	written func()
}

// Caller returns a context that ends when the answer is no longer wanted.
func (c *streamConn) Caller() context.Context { return c.caller }

// OnUnsent makes fn be called if the answer certainly does not reach the other node
// completely. The last fn counts; nil removes it.
func (c *streamConn) OnUnsent(fn func()) { c.unsent = fn }

// OnWritten makes fn be called once the answer is written, or never will be.
func (c *streamConn) OnWritten(fn func()) { c.written = fn }

// streamServer answers the streams of one connection.
type streamServer struct {
	*frameConn
	port *Port
	from Hello
	wg   sync.WaitGroup // requests under way

	mu      sync.Mutex
	callers map[uint32]context.CancelCauseFunc // by stream
}

// serveStreams answers the requests on c until it ends, which also ends the callers'
// contexts. It returns when all requests are over, and closes c.
func (p *Port) serveStreams(c *peerConn) {
	s := &streamServer{frameConn: newFrameConn(c), port: p, from: c.other, callers: make(map[uint32]context.CancelCauseFunc)}
	err := s.run()
	_ = c.Close()
	s.mu.Lock()
	for _, gone := range s.callers {
		gone(errCallerGone)
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
		case frameRequest:
			err = s.begin(f)
		case frameCancel:
			s.cancel(f.stream)
		case framePing:
			err = s.send(framePing, 0, nil)
		default:
			err = fmt.Errorf("%w: %q from a follower", errStreamFrame, f.kind)
		}
		if err != nil {
			return err
		}
	}
}

// begin starts answering a request.
func (s *streamServer) begin(f frame) error {
	if !s.port.enterStream() {
		return s.refuse(f.stream, "shutting_down", "the leader is shutting down")
	}
	caller, gone := context.WithCancelCause(s.port.ctx)
	s.mu.Lock()
	_, taken := s.callers[f.stream]
	if !taken {
		s.callers[f.stream] = gone
	}
	s.mu.Unlock()
	if taken {
		gone(nil)
		s.port.waits.Done()
		return fmt.Errorf("%w: stream %d is in use", errStreamFrame, f.stream)
	}
	if s.port.streams.Add(1) > streamsMax {
		s.end(f.stream, gone)
		defer s.port.waits.Done()
		return s.refuse(f.stream, "overloaded", "as many requests wait at the leader as it takes")
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer s.port.waits.Done()
		s.answer(caller, f, gone)
	}()
	return nil
}

// refuse answers a request without handling it.
func (s *streamServer) refuse(stream uint32, code, text string) error {
	var resp fasthttp.Response
	setError(&resp, fasthttp.StatusServiceUnavailable, code, text)
	resp.Header.Set(fasthttp.HeaderRetryAfter, "1")
	return s.sendAnswer(stream, appendAnswer(nil, &resp))
}

// end removes a stream, so that a later cancel has no effect.
func (s *streamServer) end(stream uint32, gone context.CancelCauseFunc) {
	s.mu.Lock()
	delete(s.callers, stream)
	s.mu.Unlock()
	gone(nil)
	s.port.streams.Add(-1)
}

func (s *streamServer) cancel(stream uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone := s.callers[stream]; gone != nil {
		gone(errCallerGone)
	}
}

// answer handles one request and sends the answer.
func (s *streamServer) answer(caller context.Context, f frame, gone context.CancelCauseFunc) {
	var ctx fasthttp.RequestCtx
	conn := &streamConn{Conn: s.conn, caller: caller}
	ctx.Init2(conn, httplog.Logger{Log: s.port.log, Message: "peer port"}, true)
	if err := s.port.parseRequest(f.payload, &ctx.Request); err != nil {
		answerBroken(&ctx, err)
	} else {
		s.port.answerForwarded(&ctx, s.from)
	}
	answer := appendAnswer(nil, &ctx.Response)
	s.end(f.stream, gone) // before the answer, because the number may then be reused
	if err := s.sendAnswer(f.stream, answer); err != nil && conn.unsent != nil {
		conn.unsent()
	}
	if conn.written != nil {
		conn.written()
	}
}

func (p *Port) parseRequest(payload []byte, req *fasthttp.Request) error {
	r := p.readers.Get().(*bufio.Reader)
	defer p.readers.Put(r)
	r.Reset(bytes.NewReader(payload))
	defer r.Reset(nil)
	return req.ReadLimitBody(r, streamRequestMax)
}

// appendAnswer appends an answer in HTTP format.
func appendAnswer(b []byte, resp *fasthttp.Response) []byte {
	body := resp.Body()
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(resp.StatusCode()), 10)
	b = append(b, " -\r\n"...)
	for name, value := range resp.Header.All() {
		switch string(name) {
		case fasthttp.HeaderConnection, fasthttp.HeaderContentLength, fasthttp.HeaderDate, fasthttp.HeaderServer, fasthttp.HeaderTransferEncoding:
			continue // hop by hop
		}
		b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}
