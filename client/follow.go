package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

const (
	// streamSilence limits how long a node may be silent on a stream; it sends a comment every 3 s.
	streamSilence = 9 * time.Second
	// streamLineMax bounds one line of a stream. Events are far smaller.
	streamLineMax = 1 << 20
)

// Follow returns the events of the trail as they happen, in order and each once. After a lost connection or a change
// of leader it continues at another node from the last event. It ends with ctx's error when ctx ends, or with another
// error: ErrEventsGone if it fell so far behind that the next events are no longer kept; ErrPlaceAhead if the trail
// has not reached f.After; a refusal. The loop may call Close, which ends it.
func (c *Client) Follow(ctx context.Context, f EventFilter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := c.begin(); err != nil {
			yield(Event{}, fmt.Errorf("follow events: %w", err))
			return
		}
		s := stream{c: c, filter: f, after: f.After, counted: true}
		defer s.uncount()
		s.yield = func(e Event) error {
			s.uncount() // the loop may call Close, which waits for counted streams
			if !yield(e, nil) {
				return errStopped
			}
			err := c.begin()
			s.counted = err == nil
			return err
		}
		if err := s.run(ctx); err != nil {
			s.uncount()
			yield(Event{}, fmt.Errorf("follow events: %w", err))
		}
	}
}

// errStopped is returned when the iteration was stopped by its caller.
var errStopped = errors.New("stopped")

// stream is a walk along the trail, over several connections if need be.
type stream struct {
	c      *Client
	filter EventFilter
	after  string // the place of the last event, or where to begin
	yield  func(Event) error
	tries  repeat.Call // since the last event
	// counted says that Close waits for the stream.
	counted bool
	way     route // only for the endpoints that do not know the key
}

// uncount lets Close return.
func (s *stream) uncount() {
	if s.counted {
		s.counted = false
		s.c.running.Done()
	}
}

// run opens one connection after another. It returns nil when it was stopped.
func (s *stream) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(s.c.life, func() { cancel(ErrClosed) })
	defer stop()
	for {
		base, _ := s.c.nodes.Pick(time.Now())
		verdict, err := s.connect(ctx, base)
		if errors.Is(err, ErrUnauthorized) && s.way.noteUnknownKey(s.c.nodes, base) {
			verdict = repeat.Unwritten // another node may know the key already
		}
		switch {
		case errors.Is(err, errStopped):
			return nil
		case ctx.Err() != nil:
			return ended(ctx)
		case verdict == repeat.Settled:
			return err
		}
		s.c.nodes.Failed(base, time.Now())
		s.tries.Tries++
		if err := waitFor(ctx, s.tries.Pause(0, rand.N[time.Duration])); err != nil {
			return err
		}
		s.c.logger.Debug("claimq: following the trail again", "node", base, "after", s.after, "err", err)
	}
}

// connect follows the trail at one node until the connection ends. Settled means that every node would answer the
// same.
func (s *stream) connect(ctx context.Context, base string) (repeat.Verdict, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(streamSilence, cancel)
	defer silence.Stop()
	req, err := s.c.newRequest(ctx, base, Request{Method: http.MethodGet, Path: "/api/events" + s.filter.query(s.after, 0)}, false)
	if err != nil {
		return repeat.Settled, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := s.c.waiting.Do(req)
	if err != nil {
		return repeat.Unwritten, err
	}
	defer resp.Body.Close()
	verdict, err := s.walk(resp, func() { silence.Reset(streamSilence) })
	if s.c.isOutdated(req, err) {
		verdict = repeat.Unwritten
	}
	return verdict, err
}

// walk reads a node's answer. heard is called for each line of a stream.
func (s *stream) walk(resp *http.Response, heard func()) (repeat.Verdict, error) {
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(io.LimitReader(resp.Body, streamLineMax))
		if err != nil {
			return repeat.Unwritten, err
		}
		o := judge(&Request{}, resp, body, &answer{})
		if o.err == nil {
			o.err = errors.New("the answer is no stream of events")
		}
		return o.verdict, o.err
	}
	return s.read(resp.Body, heard)
}

// message is one message of a stream: the lines before an empty one.
type message struct{ id, event, data string }

// read yields the events of a connection. heard is called for each line. A message cut off by the connection's end
// does not count.
func (s *stream) read(body io.Reader, heard func()) (repeat.Verdict, error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, streamLineMax)
	var m message
	for lines.Scan() {
		heard()
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if verdict, err := s.take(m); err != nil {
				return verdict, err
			}
			m = message{}
		case name == "id":
			m.id = value
		case name == "event":
			m.event = value
		case name == "data":
			m.data = value // the server sends one line
		}
	}
	if err := lines.Err(); err != nil {
		return repeat.Unwritten, err
	}
	return repeat.Unwritten, io.ErrUnexpectedEOF
}

// take handles a whole message: an event, the reason why the node ends the stream, or a place up to which no event is
// missing.
func (s *stream) take(m message) (repeat.Verdict, error) {
	switch {
	case m.event == "error":
		return refusedStream(m.data)
	case m.data != "":
		return repeat.Settled, s.deliver(m.data)
	case m.id != "":
		s.after = m.id
	}
	return repeat.Settled, nil
}

func (s *stream) deliver(data string) error {
	var w wire.Event
	if err := json.Unmarshal([]byte(data), &w); err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	e := eventFromWire(&w)
	s.after, s.tries = e.Place, repeat.Call{}
	return s.yield(e)
}

// refusedStream returns why the node ended a stream.
func refusedStream(data string) (repeat.Verdict, error) {
	var head wire.Refusal
	if err := json.Unmarshal([]byte(data), &head); err != nil {
		return repeat.Unwritten, fmt.Errorf("decode the stream's error: %w", err)
	}
	status := head.Code.Status()
	return repeat.Judge(status, head.Code), &Error{
		Status: status, Code: string(head.Code), Text: head.Error, Advice: head.Message, RequestID: head.RequestID, Details: json.RawMessage(data),
	}
}

// Wait waits until the task has ended, and returns it. It waits as long as ctx permits, without a deadline for ever,
// in requests of at most 6 s. If ctx ends, its error is returned. Errors: ErrTaskNotFound, also if the task is
// removed meanwhile; ErrNoLeader, ... if the cluster does not answer for Config.Timeout.
func (c *Client) Wait(ctx context.Context, id string) (*Task, error) {
	number, err := parseID(id)
	if err != nil {
		return nil, fmt.Errorf("wait for task: %w", err)
	}
	path := "/api/tasks/" + formatID(number)
	until := waitUntil(ctx, waitMax)
	for {
		asked := time.Now()
		wait := max(0, min(time.Until(until), repeat.PollMax))
		a, err := c.call(ctx, Request{
			Method: http.MethodGet, Path: path + "?wait_ms=" + strconv.FormatInt(milliseconds(wait), 10), Wait: wait,
		})
		if err != nil {
			return nil, fmt.Errorf("wait for task %s: %w", id, err)
		}
		decoded, err := decodeAnswer(a.body)
		if err == nil && decoded.Task == nil {
			err = errors.New("the answer has no task")
		}
		if err != nil {
			return nil, fmt.Errorf("wait for task %s: %w", id, err)
		}
		if t := fromWire(decoded.Task); t.Status.Ended() {
			return t, nil
		}
		if err := waitFor(ctx, emptyPause-time.Since(asked)); err != nil {
			return nil, fmt.Errorf("wait for task %s: %w", id, err)
		}
	}
}
