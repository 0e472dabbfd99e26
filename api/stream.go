package api

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

const (
	// streamSilence is the longest time without data on a stream. Clients consider a stream dead after three times as
	// long.
	streamSilence = 3 * time.Second
	// streamWriteTimeout limits how long a client may take to read one packet.
	streamWriteTimeout = 30 * time.Second
	// streamEndTimeout replaces it once the server drains.
	streamEndTimeout = time.Second
	// streamRetryMS tells browsers how long to wait before they reconnect.
	streamRetryMS = "1000"
)

const headerLastEventID = "Last-Event-Id" // as fasthttp spells it

// stream answers GET /api/events with server-sent events from this node's own state. It begins after q.After if that
// was given, otherwise with new events. The place that a browser sends when it reconnects takes precedence over the
// one in its URL.
func (s *Streams) stream(r *exchange.Request, q event.Query, given bool) {
	if id := r.HTTP.Request.Header.Peek(headerLastEventID); len(id) > 0 {
		if q.After, given = trail.ParsePlace(string(id)); !given {
			r.Refuse(badParam("Last-Event-ID", "the id of an event, as INDEX.SUB"))
			return
		}
	}
	h := r.Server
	if err := h.Node.Ready(); err != nil && !given {
		r.Refuse(refuseUnready(err)) // this node would send old events as new
		return
	}
	if given {
		ahead, at, err := trail.IsAhead(r.Wait(), h.Node, q.After)
		switch {
		case err != nil:
			r.RefuseCode(err)
			return
		case ahead:
			r.Refuse(refusePlaceAhead(at))
			return
		}
	}
	st := &stream{server: h, feed: s.feed, conn: r.HTTP.Conn(), sight: r.Sight(), query: q, id: append([]byte(nil), r.ID...)}
	key, end := context.WithCancelCause(context.Background())
	st.key = key
	leave, bad := h.Shares.Hold(lasting.Stream, r.Who, r.Source(), end)
	if bad != nil {
		end(nil)
		r.Refuse(bad)
		return
	}
	if !s.feed.Open() {
		leave()
		end(nil)
		r.Refuse(refuse.Because(wire.CodeOverloaded))
		return
	}
	st.leave = func() {
		leave()
		end(nil)
		s.feed.Close()
	}
	if !trail.Filtered(&q) && r.HTTP.Request.Header.HasAcceptEncoding("gzip") {
		st.sum = new(trail.Gzip)
	}
	r.Stale = true // whatever was asked for, because any node may answer
	var page event.Page
	ok := r.Read(func(m *fsm.Machine, _ fsm.Stamp) {
		if !given {
			st.query.After = m.NewestEvent()
			return
		}
		page = m.Events(event.Query{After: q.After, Limit: 1})
	})
	switch {
	case !ok:
	case page.Gone:
		r.Refuse(refuseEventsGone(page.Oldest))
	default:
		startStream(r, st)
		return
	}
	st.leave()
}

// startStream answers with the header of a stream, whose body is st.
func startStream(r *exchange.Request, st *stream) {
	resp := &r.HTTP.Response
	resp.Header.SetContentType(eventStream)
	resp.Header.Set("Cache-Control", "no-store")
	resp.Header.Set("X-Accel-Buffering", "no") // a proxy must not buffer it
	if st.sum != nil {
		resp.Header.SetContentEncoding("gzip")
	}
	resp.SetConnectionClose()
	st.plain = plain(r)
	resp.SetBodyStream(st, -1)
	resp.ImmediateHeaderFlush = true
}

// plain reports whether the request uses HTTP/1.0. An answer to it cannot have chunks (RFC 9112, 6.1); it ends with
// the connection.
func plain(r *exchange.Request) bool {
	conn, ok := r.HTTP.Conn().(*port.Conn)
	if ok = ok && !r.HTTP.Request.Header.IsHTTP11(); ok {
		conn.Plain()
	}
	return ok
}

// stream is the body of an answer that does not end. The HTTP server reads it in the connection's goroutine after the
// header was sent, so that it can write to the connection itself: whole packets, shared with other streams, each with
// its own deadline.
type stream struct {
	server *exchange.Host
	feed   *trail.Feed
	conn   net.Conn
	sight  *exchange.Sight
	query  event.Query     // After is the place that the stream has reached
	id     []byte          // request id
	sum    *trail.Gzip     // over the sent bytes; nil: not compressed
	key    context.Context // ends with a *lasting.Ended when the key is no longer valid
	buf    []byte          // for what only this stream sends
	plain  bool            // without chunks
	leave  func()          // uncounts it
	once   sync.Once
}

// errStreamCut is returned when a stream could not be written.
var errStreamCut = errors.New("the stream of events was cut")

// Read sends the stream until it ends. It returns io.EOF if the client was told that it ends.
func (st *stream) Read([]byte) (int, error) {
	ctx, cancel := context.WithCancelCause(st.server.Serving)
	defer cancel(nil)
	if conn, ok := st.conn.(*port.Conn); ok {
		st.conn = conn.Lend()
		defer conn.Return(streamEndTimeout) // for the end of the body
		if end := conn.Watch(cancel); end != nil {
			defer end()
		}
	}
	// A client that does not read must not hold up a server that drains.
	defer context.AfterFunc(ctx, func() { _ = st.setDeadline(streamEndTimeout) })()
	err := st.run(ctx)
	if err == nil {
		err = st.finish(ctx)
	}
	if err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// Close uncounts the stream, whether or not it was sent.
func (st *stream) Close() error {
	st.once.Do(st.leave)
	return nil
}

// run sends until ctx ends, or until the next events are no longer kept; then it returns nil.
func (st *stream) run(ctx context.Context) error {
	if err := st.say(ctx, "retry: "+streamRetryMS+"\n"); err != nil {
		return err
	}
	silence := time.NewTimer(streamSilence)
	defer silence.Stop()
	for {
		p, news, isBehind := st.feed.Next(st.query.After)
		ended := st.ended()
		var err error
		switch {
		case ctx.Err() != nil:
			return nil
		case ended != nil:
			return st.fail(ctx, st.server.RefuseEnded(ended))
		case p != nil:
			err = st.send(ctx, p)
		case isBehind:
			var over bool
			if over, err = st.catchUp(ctx); over {
				return err
			}
		default:
			select {
			case <-ctx.Done():
				return nil
			case <-st.key.Done():
				continue
			case <-news:
				continue
			case <-silence.C:
				err = st.say(ctx, ": still here\n")
			}
		}
		if err != nil {
			return err
		}
		silence.Reset(streamSilence)
	}
}

// ended returns why the stream's key is no longer valid, or nil.
func (st *stream) ended() (ended *lasting.Ended) {
	errors.As(context.Cause(st.key), &ended)
	return ended
}

// say sends lines and the place that the stream has reached, so that a client that has seen no event for long
// continues there.
func (st *stream) say(ctx context.Context, lines string) error {
	b := append(st.buf[:0], lines...)
	b = trail.AppendPlace(append(b, "id: "...), st.query.After)
	st.buf = append(b, "\n\n"...)
	return st.sendOwn(ctx)
}

// send sends the events of a packet that the stream's client wants.
func (st *stream) send(ctx context.Context, p *trail.Packet) error {
	after := st.query.After
	st.query.After = p.Next
	if p.After == after && !trail.Filtered(&st.query) {
		return st.sendWhole(ctx, p)
	}
	return st.sendPart(ctx, p, after)
}

// sendPart sends the events of the packet after a place that the client wants and may see.
func (st *stream) sendPart(ctx context.Context, p *trail.Packet, after event.Pos) error {
	st.buf = p.Part(st.buf[:0], after, &st.query, func(e *event.Event) bool { return st.hides(ctx, e) })
	return st.sendOwn(ctx)
}

// hides reports whether the event reveals steps that the stream's key may not see. Few events can, so the state is
// read for each of them.
func (st *stream) hides(ctx context.Context, e *event.Event) bool {
	hides := !st.sight.All() && exchange.Ends(e)
	if hides {
		_, _ = st.server.Node.ReadStale(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) { hides = st.sight.Hides(m, e) })
	}
	return hides
}

// sendWhole sends a whole packet.
func (st *stream) sendWhole(ctx context.Context, p *trail.Packet) error {
	switch {
	case len(p.Events) == 0:
		return nil
	case st.sum == nil:
		return st.write(ctx, p.Whole())
	}
	z := p.Zip()
	st.sum.Add(z)
	return st.write(ctx, z.Chunk)
}

// sendOwn sends what is in buf.
func (st *stream) sendOwn(ctx context.Context) error {
	if len(st.buf) == 0 {
		return nil
	}
	b := trail.BeginChunk(make([]byte, 0, trail.ChunkHead+len(st.buf)+answerBuffer/8))
	if st.sum == nil {
		b = append(b, st.buf...)
	} else {
		b = st.sum.Store(b, st.buf)
	}
	if cap(st.buf) > answerBuffer {
		st.buf = nil
	}
	b, start := trail.EndChunk(b)
	return st.write(ctx, b[start:])
}

// finish ends a compressed stream.
func (st *stream) finish(ctx context.Context) error {
	if st.sum == nil {
		return nil
	}
	b, start := trail.EndChunk(st.sum.End(trail.BeginChunk(nil)))
	return st.write(ctx, b[start:])
}

// catchUp sends events that the feed no longer has. over says that the stream ends.
func (st *stream) catchUp(ctx context.Context) (over bool, err error) {
	select {
	case st.feed.CatchUps <- struct{}{}:
	case <-ctx.Done():
		return true, nil
	}
	read, err := trail.Read(st.server.Waits.At(time.Now()), st.server.Node, st.query)
	<-st.feed.CatchUps
	switch {
	case err != nil:
		return true, st.fail(ctx, refuse.Because(refuse.CodeOf(err, false)))
	case read.Gone:
		return true, st.fail(ctx, refuseEventsGone(read.Oldest))
	}
	after := st.query.After
	st.query.After = read.Packet.Next
	if !st.sight.All() {
		return false, st.sendPart(ctx, read.Packet, after)
	}
	return false, st.sendWhole(ctx, read.Packet)
}

// fail tells the client why the stream ends.
func (st *stream) fail(ctx context.Context, f *refuse.Refusal) error {
	b := append(st.buf[:0], "event: error\ndata: "...)
	st.buf = append(refuse.Append(b, f, st.id), "\n\n"...)
	return st.sendOwn(ctx)
}

// write writes a chunk.
func (st *stream) write(ctx context.Context, chunk []byte) error {
	if st.plain {
		chunk = trail.Content(chunk)
	}
	if room := int64(len(chunk)); room > exchange.AnswerFreeBytes {
		// Packets are shared, but slow clients hold theirs longer.
		if !st.server.Port.Answers.Take(room) {
			return errStreamCut
		}
		defer st.server.Port.Answers.Give(room)
	}
	err := st.setDeadline(streamWriteTimeout)
	if err == nil && ctx.Err() != nil {
		err = st.setDeadline(streamEndTimeout) // ctx may have ended before the deadline was set
	}
	if err == nil {
		_, err = st.conn.Write(chunk)
	}
	if err != nil {
		return errors.Join(errStreamCut, err)
	}
	return nil
}

func (st *stream) setDeadline(after time.Duration) error {
	return st.conn.SetWriteDeadline(time.Now().Add(after))
}
