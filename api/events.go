package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

// eventStream is the content type of a stream of events.
const eventStream = "text/event-stream"

// streams serves a node's streams of events.
type streams struct {
	feed *trail.Feed // the end of the trail, shared by all streams
}

func newStreams(feed *trail.Feed) *streams { return &streams{feed} }

// answer answers GET /api/events with a page or a stream of the trail.
func (s *streams) answer(r *request) {
	streams := wantsStream(r)
	q, given, bad := parseEvents(r, streams)
	if bad == nil {
		bad = r.refuseFilter("task_type", q.Type)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	if streams {
		s.stream(r, q, given)
		return
	}
	page, at, ok := readEvents(r, q)
	switch {
	case !ok:
	case page.Gone:
		r.refuse(refuseEventsGone(page.Oldest))
	case trail.After(q.After, at) && !r.asked.stale: // otherwise this node may just be behind
		r.refuse(refusePlaceAhead(at))
	case r.reserveAnswer(len(page.Events) * eventBytes):
		r.send(fasthttp.StatusOK, appendEvents(r.buffer(), page.Events, page.Next, at))
	}
}

const (
	// eventsLook is the number of events examined under one lock; each takes about 0.5 µs.
	eventsLook = 2_000
	// eventsLooks is the number of looks for a page.
	eventsLooks = 5
	// eventBytes is the approximate size of an event in an answer.
	eventBytes = 256
)

// readEvents reads a page of the trail, and returns the trail's place. Later looks are as of a later index. ok is
// false if the request was already answered.
func readEvents(r *request, q event.Query) (page event.Page, at event.Pos, ok bool) {
	q.Look = eventsLook
	index := uint64(0)
	look := func(m *fsm.Machine, _ fsm.Stamp) {
		found := m.Events(q)
		found.Events = r.sight().redactEvents(m, &q, found.Events)
		index, at = m.Index(), m.Place()
		if found.Gone && len(page.Events) > 0 { // they were dropped meanwhile; the page is complete up to there
			page.More = false
			return
		}
		found.Events = append(page.Events, found.Events...)
		q.Limit -= len(found.Events) - len(page.Events)
		page, q.After = found, found.Next
	}
	ok = r.read(look)
	for n := 1; ok && page.More && q.Limit > 0 && n < eventsLooks; n++ {
		ok = r.readOn(index, look)
	}
	return page, at, ok
}

// wantsStream reports whether the request asks for a stream. Any node answers it.
func wantsStream(r *request) bool {
	return bytes.Contains(r.header("Accept"), []byte(eventStream))
}

// listTaskEvents answers GET /api/tasks/{id}/events. next is the place of the trail's newest event, so that a client that
// continues there misses no event of the task.
func listTaskEvents(r *request) {
	id := r.taskID()
	var events []event.Event
	var newest, at event.Pos
	var bad *refuse.Refusal
	ok := r.read(func(m *fsm.Machine, _ fsm.Stamp) {
		events, newest, at = m.TaskEvents(id), m.NewestEvent(), m.Place()
		t := m.Get(id)
		if t == nil && len(events) > 0 { // events are kept longer than the task
			t = &fsm.Task{ID: id, Type: events[0].Type}
		}
		if bad = r.refuseTask(m, t); bad == nil {
			events = r.sight().redactEvents(m, new(event.Query), events)
		}
	})
	if !ok {
		return
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.send(fasthttp.StatusOK, appendEvents(r.buffer(), events, newest, at))
}

// appendEvents appends a page of the trail. at is the place of the trail's end.
func appendEvents(b []byte, events []event.Event, next, at event.Pos) []byte {
	b = jsonout.List(b, `{"success":true,"events":`, len(events), func(b []byte, i int) []byte { return trail.AppendEvent(b, &events[i]) })
	b = append(b, `,"next":"`...)
	b = append(trail.AppendPlace(b, next), `","place":"`...)
	return append(trail.AppendPlace(b, at), `"}`...)
}

// refusePlaceAhead refuses a place that the trail, which is at at, has not reached.
func refusePlaceAhead(at event.Pos) *refuse.Refusal {
	f := refuse.Because(wire.CodePlaceAhead)
	f.Text += ": it is at " + string(trail.AppendPlace(nil, at))
	f.Details = string(append(trail.AppendPlace([]byte(`,"place":"`), at), '"'))
	return f
}

// refuseEventsGone refuses a place whose following events are no longer kept.
func refuseEventsGone(oldest event.Pos) *refuse.Refusal {
	f := refuse.Because(wire.CodeEventsGone)
	f.Text = "The events asked for are kept no more: the oldest is " + string(trail.AppendPlace(nil, oldest))
	f.Details = string(append(trail.AppendPlace([]byte(`,"oldest":"`), oldest), '"'))
	return f
}

// parseEvents reads the parameters of GET /api/events. given says that after was given.
func parseEvents(r *request, streams bool) (q event.Query, given bool, bad *refuse.Refusal) {
	limitMax := r.limits().Items
	q.Limit = min(wire.PageDefault, limitMax)
	bad = r.readParams(params{
		"after": func(p param) *refuse.Refusal {
			if q.After, given = trail.ParsePlace(p.value); !given {
				return badParam(p.name, "a place in the trail, as INDEX or INDEX.SUB")
			}
			return nil
		},
		"task_type": typeParam(&q.Type),
		"worker_id": holderParam(&q.WorkerID),
		paramEvent: func(p param) *refuse.Refusal {
			kind, ok := event.ParseKind(p.value)
			if !ok {
				return badParam(p.name, "the name of an event, as docs/api.md lists them")
			}
			q.Kinds = q.Kinds.With(kind)
			return nil
		},
		"limit": func(p param) *refuse.Refusal {
			if streams {
				return refuse.Param(p.name, "limit does not go with Accept: "+eventStream)
			}
			return countParam(&q.Limit, limitMax)(p)
		},
	})
	return q, given, bad
}

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
func (s *streams) stream(r *request, q event.Query, given bool) {
	if id := r.header(headerLastEventID); len(id) > 0 {
		if q.After, given = trail.ParsePlace(string(id)); !given {
			r.refuse(badParam("Last-Event-ID", "the id of an event, as INDEX.SUB"))
			return
		}
	}
	c := r.core
	if err := c.node.Ready(); err != nil && !given {
		r.refuse(refuseUnready(err)) // this node would send old events as new
		return
	}
	if given {
		ahead, at, err := trail.IsAhead(r.ctx(), c.node, q.After)
		switch {
		case err != nil:
			r.refuseCode(err)
			return
		case ahead:
			r.refuse(refusePlaceAhead(at))
			return
		}
	}
	st := &stream{server: c, feed: s.feed, conn: r.http.Conn(), sight: r.sight(), query: q, id: append([]byte(nil), r.id...)}
	key, end := context.WithCancelCause(context.Background())
	st.key = key
	leave, bad := c.shares.Hold(door.ShareStream, r.who.key, r.source(), end)
	if bad != nil {
		end(nil)
		r.refuse(bad)
		return
	}
	if !s.feed.Open() {
		leave()
		end(nil)
		r.refuse(refuse.Because(wire.CodeOverloaded))
		return
	}
	st.leave = func() {
		leave()
		end(nil)
		s.feed.Close()
	}
	r.asked.stale = true // whatever was asked for, because any node may answer
	var page event.Page
	ok := r.read(func(m *fsm.Machine, _ fsm.Stamp) {
		if !given {
			st.query.After = m.NewestEvent()
			return
		}
		page = m.Events(event.Query{After: q.After, Limit: 1})
	})
	switch {
	case !ok:
	case page.Gone:
		r.refuse(refuseEventsGone(page.Oldest))
	default:
		startStream(r, st)
		return
	}
	st.leave()
}

// startStream answers with the header of a stream, whose body is st.
func startStream(r *request, st *stream) {
	resp := &r.http.Response
	resp.Header.SetContentType(eventStream)
	resp.Header.Set("Cache-Control", "no-store")
	resp.Header.Set("X-Accel-Buffering", "no") // a proxy must not buffer it
	resp.SetConnectionClose()
	st.plain = plain(r)
	resp.SetBodyStream(st, -1)
	resp.ImmediateHeaderFlush = true
}

// plain reports whether the request uses HTTP/1.0. An answer to it cannot have chunks (RFC 9112, 6.1); it ends with
// the connection.
func plain(r *request) bool {
	conn, ok := r.http.Conn().(*door.Conn)
	if ok = ok && !r.http.Request.Header.IsHTTP11(); ok {
		conn.Plain()
	}
	return ok
}

// stream is the body of an answer that does not end. The HTTP server reads it in the connection's goroutine after the
// header was sent, so that it can write to the connection itself: whole packets, shared with other streams, each with
// its own deadline.
type stream struct {
	server *core
	feed   *trail.Feed
	conn   net.Conn
	sight  *sight
	query  event.Query     // After is the place that the stream has reached
	id     []byte          // request id
	key    context.Context // ends with a *door.KeyEnded when the key is no longer valid
	buf    []byte          // for what only this stream sends
	plain  bool            // without chunks
	leave  func()          // uncounts it
	once   sync.Once
}

// errStreamCut is returned when a stream could not be written.
var errStreamCut = errors.New("the stream of events was cut")

// Read sends the stream until it ends. It returns io.EOF if the client was told that it ends.
func (st *stream) Read([]byte) (int, error) {
	ctx, cancel := context.WithCancelCause(st.server.serving)
	defer cancel(nil)
	if conn, ok := st.conn.(*door.Conn); ok {
		st.conn = conn.Lend()
		defer conn.Return(streamEndTimeout) // for the end of the body
		if end := conn.Watch(cancel); end != nil {
			defer end()
		}
		if at := conn.Ends(); !at.IsZero() {
			defer time.AfterFunc(time.Until(at), func() { cancel(nil) }).Stop()
		}
	}
	// A client that does not read must not hold up a server that drains.
	defer context.AfterFunc(ctx, func() { _ = st.setDeadline(streamEndTimeout) })()
	if err := st.run(ctx); err != nil {
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
			return st.fail(ctx, st.server.refuseEnded(ended))
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
func (st *stream) ended() (ended *door.KeyEnded) {
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
	hides := !st.sight.seesAll() && revealsEnd(e)
	if hides {
		_, _ = st.server.node.ReadStale(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) { hides = st.sight.hidesEvent(m, e) })
	}
	return hides
}

func (st *stream) sendWhole(ctx context.Context, p *trail.Packet) error {
	if len(p.Events) == 0 {
		return nil
	}
	return st.write(ctx, p.Whole())
}

// sendOwn sends what is in buf.
func (st *stream) sendOwn(ctx context.Context) error {
	if len(st.buf) == 0 {
		return nil
	}
	b := append(trail.BeginChunk(make([]byte, 0, trail.ChunkHead+len(st.buf)+answerBuffer/8)), st.buf...)
	if cap(st.buf) > answerBuffer {
		st.buf = nil
	}
	b, start := trail.EndChunk(b)
	return st.write(ctx, b[start:])
}

// catchUp sends events that the feed no longer has. over says that the stream ends.
func (st *stream) catchUp(ctx context.Context) (over bool, err error) {
	select {
	case st.feed.CatchUps <- struct{}{}:
	case <-ctx.Done():
		return true, nil
	}
	read, err := trail.Read(st.server.waits.at(time.Now()), st.server.node, st.query)
	<-st.feed.CatchUps
	switch {
	case err != nil:
		return true, st.fail(ctx, refuse.Because(refuse.CodeOf(err, false)))
	case read.Gone:
		return true, st.fail(ctx, refuseEventsGone(read.Oldest))
	}
	after := st.query.After
	st.query.After = read.Packet.Next
	if !st.sight.seesAll() {
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

func (st *stream) write(ctx context.Context, chunk []byte) error {
	if st.plain {
		chunk = trail.Content(chunk)
	}
	if size := int64(len(chunk)); size > answerFreeBytes {
		// Packets are shared, but slow clients hold theirs longer.
		if !st.server.port.Answers.TryReserve(size) {
			return errStreamCut
		}
		defer st.server.port.Answers.Free(size)
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
