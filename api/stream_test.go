package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/nodes"
)

// sse is one block of a stream: an event, a place or a comment.
type sse struct{ id, event, data, comment string }

// streamReader reads a stream.
type streamReader struct {
	t    testing.TB
	conn net.Conn
	head *http.Response
	body *bufio.Reader

	checked int // blocks compared with the API's description
}

// describedMax bounds the blocks of a stream that are compared with the API's description, because that takes time.
const describedMax = 20

// openStream opens a stream and reads its header.
func openStream(t testing.TB, addr, target string, headers ...string) *streamReader {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return streamOver(t, conn, "GET "+target, headers...)
}

func streamOver(t testing.TB, conn net.Conn, target string, headers ...string) *streamReader {
	t.Helper()
	lines := append([]string{target + " HTTP/1.1", "Host: localhost", "Accept: text/event-stream"}, headers...)
	request := strings.Join(lines, "\r\n") + "\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	head, err := http.ReadResponse(r, &http.Request{Method: strings.Fields(target)[0]})
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	f := &streamReader{t: t, conn: conn, head: head, body: bufio.NewReader(head.Body)}
	if head.StatusCode == http.StatusOK {
		f.described("")
	}
	return f
}

// described checks that the API's description has the answer, of which text was read.
func (f *streamReader) described(text string) {
	f.t.Helper()
	a := answer{status: http.StatusOK, header: map[string]string{"Content-Type": eventStream, "X-Request-Id": "r"}, body: text}
	if f.head != nil { // otherwise it reads a stream without an answer's header
		a.status, a.header = f.head.StatusCode, make(map[string]string)
		for name := range f.head.Header {
			a.header[name] = f.head.Header.Get(name)
		}
	}
	described(f.t, "GET", "/api/events", "", a)
}

// next reads one block, within testwait.Patience. It returns io.EOF if the stream has ended properly.
func (f *streamReader) next() (b sse, err error) {
	if f.conn != nil {
		if err := f.conn.SetReadDeadline(time.Now().Add(testwait.Patience)); err != nil {
			return b, err
		}
	}
	for {
		line, err := f.body.ReadString('\n')
		if err != nil {
			return b, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n":
			if f.checked++; b.data != "" && f.checked <= describedMax {
				f.described("event: " + b.event + "\ndata: " + b.data + "\n\n")
			}
			return b, nil
		case name == "":
			b.comment = value
		case name == "id":
			b.id = value
		case name == "event":
			b.event = value
		case name == "data":
			b.data = value
		}
	}
}

// begin reads the first block, which has no event, and returns its place.
func (f *streamReader) begin() string {
	f.t.Helper()
	if f.head.StatusCode != 200 || f.head.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(f.body)
		f.t.Fatalf("%d %v: %s", f.head.StatusCode, f.head.Header, body)
	}
	b, err := f.next()
	if err != nil || b.id == "" || b.data != "" || b.event != "" {
		f.t.Fatalf("first block: %+v, %v", b, err)
	}
	return b.id
}

// blocks reads the blocks of n events.
func (f *streamReader) blocks(n int) []sse {
	f.t.Helper()
	var out []sse
	for len(out) < n {
		b, err := f.next()
		if err != nil {
			f.t.Fatalf("after %d of %d events: %v", len(out), n, err)
		}
		if b.data != "" {
			out = append(out, b)
		}
	}
	return out
}

// events reads n events, each of which has its place as its id.
func (f *streamReader) events(n int) []wire.Event {
	f.t.Helper()
	var out []wire.Event
	for _, b := range f.blocks(n) {
		var e wire.Event
		if err := json.Unmarshal([]byte(b.data), &e); err != nil {
			f.t.Fatalf("%v: %+v", err, b)
		}
		if want := fmt.Sprintf("%d.%d", e.Index, e.Sub); b.id != want || b.event != "" {
			f.t.Fatalf("block %+v, want id %s", b, want)
		}
		out = append(out, e)
	}
	return out
}

// streamsLeft waits until the server counts n streams.
func streamsLeft(t testing.TB, s *Server, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); s.feed.Count() != n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d streams are counted, want %d", s.feed.Count(), n)
		}
		<-time.After(time.Millisecond)
	}
}

func TestServer_Stream(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	addr := listen(t, s)
	submitOne(t, s, `{"task_type":"a","params":1}`)
	node.Follower = true // any node answers

	node.ReadyErr = nodes.ErrNoLeader
	s.call(t, "GET /api/events", "", "Accept: text/event-stream").refused(t, wire.CodeNoLeader)
	openStream(t, addr, "/api/events?after=1.1").conn.Close() // it can continue anywhere
	streamsLeft(t, s, 0)
	node.ReadyErr = nil

	fresh := openStream(t, addr, "/api/events")
	if at := fresh.begin(); at != "1.1" {
		t.Errorf("a stream of what is new begins at %s", at)
	}
	h := fresh.head.Header
	if h.Get("X-Claimq-Index") != "1" || h.Get("Cache-Control") != "no-store" || h.Get("X-Request-Id") == "" {
		t.Errorf("head: %v", h)
	}
	old := openStream(t, addr, "/api/events?after=0")
	old.begin()
	resumed := openStream(t, addr, "/api/events?after=0", "Last-Event-ID: 1.0")
	if at := resumed.begin(); at != "1.0" {
		t.Errorf("a stream that goes on at 1.0 begins at %s", at)
	}
	filtered := openStream(t, addr, "/api/events?task_type=b&event=submitted&worker_id=", "Connection: close")
	if filtered.head.StatusCode != 400 {
		t.Errorf("an empty worker_id: %d", filtered.head.StatusCode)
	}
	filtered = openStream(t, addr, "/api/events?task_type=b&event=submitted&after=0", "Connection: close")
	filtered.begin()
	streamsLeft(t, s, 4)

	node.Follower = false
	submitOne(t, s, `{"task_type":"a","params":1}`)
	submitOne(t, s, `{"task_type":"b","params":1}`)
	for _, c := range []struct {
		name string
		f    *streamReader
		want string
	}{
		{"new", fresh, "2.0 submitted, 3.0 submitted"},
		{"old", old, "1.0 level_raised, 1.1 submitted, 2.0 submitted, 3.0 submitted"},
		{"resumed", resumed, "1.1 submitted, 2.0 submitted, 3.0 submitted"},
		{"filtered", filtered, "3.0 submitted"},
	} {
		if got := brief(c.f.events(strings.Count(c.want, ",") + 1)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if a := s.call(t, "GET /metrics", ""); !strings.Contains(a.body, "\nclaimq_event_streams 4\n") {
		t.Error("the metric does not count 4 streams")
	}
	for _, f := range []*streamReader{fresh, old, resumed, filtered} {
		f.conn.Close()
	}
	streamsLeft(t, s, 0) // although nothing is sent

	head, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer head.Close()
	if f := streamOver(t, head, "HEAD /api/events"); f.head.StatusCode != 200 || f.head.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", f.head.StatusCode, f.head.Header)
	}
	streamsLeft(t, s, 0)
}

// TestServer_StreamsAgree lets many streams begin, stop and continue while events happen: each gets every event that
// it asked for, once and in order.
func TestServer_StreamsAgree(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	addr := listen(t, s)
	const readers = 12
	tasks := proof.Count(800, 2_000)
	enough := tasks / 2 // events that pass every filter
	filters := []string{"", "task_type=b", "event=claimed", "worker_id=w"}
	seen := make([][]wire.Event, readers)
	var wait sync.WaitGroup
	for i := range readers {
		wait.Go(func() {
			place := "0"
			for round := 0; len(seen[i]) < enough; round++ {
				f := openStream(t, addr, "/api/events?after="+place+"&"+filters[i%len(filters)])
				f.begin()
				got := f.events(1 + min((i*37+round*11)%200, enough-1-len(seen[i])))
				f.conn.Close()
				seen[i] = append(seen[i], got...)
				last := got[len(got)-1]
				place = fmt.Sprintf("%d.%d", last.Index, last.Sub)
			}
		})
	}
	for i := range tasks {
		_, err := node.Apply(command.Submit{Tasks: []fsm.NewTask{{Type: []string{"a", "b"}[i%2], Params: []byte("1"), MaxAttempts: 3}}})
		if err == nil && i%2 == 0 {
			_, err = node.Apply(command.ClaimNext{WorkerID: "w", Limit: 2, LeaseMS: 1000})
		}
		if err != nil {
			t.Error(err)
		}
	}
	wait.Wait()
	for i := range readers {
		want := pages(t, s, filters[i%len(filters)])[:enough]
		if d := cmp.Diff(want, seen[i]); d != "" {
			t.Errorf("reader %d (-want +got):\n%s", i, d)
		}
	}
}

// pages returns all events that pass a filter, page by page.
func pages(t testing.TB, s *Server, filter string) (all []wire.Event) {
	t.Helper()
	for next := "0"; ; {
		page := eventsOf(t, s.call(t, "GET /api/events?limit=97&after="+next+"&"+filter, ""))
		if len(page.Events) == 0 {
			return all
		}
		all, next = append(all, page.Events...), page.Next
	}
}

// TestServer_StreamWithinPacket checks that a stream that continues within a packet gets only the rest of it.
func TestServer_StreamWithinPacket(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	addr := listen(t, s)
	first := openStream(t, addr, "/api/events")
	first.begin()
	nodetest.SubmitTo(t, node, 5)
	first.events(6)
	for _, c := range []struct{ query, want string }{
		{"after=1.3", "1.4 submitted, 1.5 submitted, 2.0 submitted"},
		{"after=1.4", "1.5 submitted, 2.0 submitted"},
		{"after=1.1&event=submitted", "1.2 submitted, 1.3 submitted, 1.4 submitted, 1.5 submitted, 2.0 submitted"},
		{"after=1", "2.0 submitted"},
	} {
		f := openStream(t, addr, "/api/events?"+c.query)
		f.begin()
		n := strings.Count(c.want, ",") + 1
		if s.feed.Place().Index == 1 {
			nodetest.SubmitTo(t, node, 1)
			first.events(1)
		}
		if got := brief(f.events(n)); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
}

// TestServer_StreamGone checks that a stream that falls behind the kept events ends with that reason.
func TestServer_StreamGone(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1}`)
	client, server := net.Pipe()
	defer client.Close()
	st := &stream{server: s.core, feed: s.feed, key: t.Context(), leave: s.feed.Close, conn: server, id: []byte("r"), query: event.Query{After: event.Pos{Index: 1}}}
	nodetest.LoseTrail(t, node)
	if !s.feed.Open() {
		t.Fatal("no stream may be opened")
	}
	done := make(chan error, 1)
	go func() {
		_, err := st.Read(nil)
		done <- err
	}()
	f := &streamReader{t: t, conn: client, body: bufio.NewReader(httputil.NewChunkedReader(client))}
	if b, err := f.next(); err != nil || b.id != "1.0" {
		t.Fatalf("first block: %+v, %v", b, err)
	}
	b, err := f.next()
	var refused struct{ Code, Oldest string }
	if err != nil || json.Unmarshal([]byte(b.data), &refused) != nil || b.event != "error" || refused.Code != "events_gone" || refused.Oldest != "4.0" {
		t.Errorf("last block: %+v, %v", b, err)
	}
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	st.Close()
}

// TestServer_StreamBounds checks the bound of streams.
func TestServer_StreamBounds(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	for range trail.StreamsMax - 1 {
		if !s.feed.Open() {
			t.Fatal("no stream may be opened")
		}
	}
	last := openStream(t, addr, "/api/events")
	last.begin()
	s.call(t, "GET /api/events", "", "Accept: text/event-stream").refused(t, wire.CodeOverloaded)
	last.conn.Close()
	streamsLeft(t, s, trail.StreamsMax-1)
	openStream(t, addr, "/api/events").begin()
}

// TestServer_StreamsDrain checks that streams end when the server drains: properly, or at least in time if the client
// does not read.
func TestServer_StreamsDrain(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	addr := listen(t, s)
	reads := openStream(t, addr, "/api/events")
	reads.begin()
	sleeps := openStream(t, addr, "/api/events?after=0")
	sleeps.begin()
	if err := sleeps.conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	// More than the sockets can buffer, although the other one does not read.
	var got []sse
	for count := 5_001; len(got) < 40_001; count = 5_000 { // the first time with one more event
		tasks := make([]fsm.NewTask, 5_000)
		for i := range tasks {
			tasks[i] = fsm.NewTask{Type: strings.Repeat("t", 100), Params: []byte("1")}
		}
		if _, err := node.Apply(command.Submit{Tasks: tasks}); err != nil {
			t.Fatal(err)
		}
		got = append(got, reads.blocks(count)...)
	}
	if last := got[len(got)-1]; !strings.HasSuffix(last.id, ".4999") {
		t.Errorf("the last event is %+v", last)
	}
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		done <- s.Shutdown(ctx)
	}()
	if b, err := reads.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %+v, %v", b, err)
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if n := s.feed.Count(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// TestStream_Silence checks that a stream without events sends a sign of life in time, that its write deadline does
// not end it, and that its place moves on.
func TestStream_Silence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		client, server := net.Pipe()
		defer client.Close()
		if !s.feed.Open() {
			t.Fatal("no stream may be opened")
		}
		st := &stream{server: s.core, feed: s.feed, key: t.Context(), leave: s.feed.Close, conn: server, query: event.Query{Type: "none"}}
		var wait sync.WaitGroup
		defer wait.Wait()
		wait.Go(func() {
			defer st.Close()
			if _, err := st.Read(nil); !errors.Is(err, io.EOF) {
				t.Errorf("the stream ended with %v", err)
			}
			server.Close()
		})
		f := &streamReader{t: t, conn: client, body: bufio.NewReader(httputil.NewChunkedReader(client))}
		if b, err := f.next(); err != nil || b.id != "0.0" {
			t.Fatalf("first block: %+v, %v", b, err)
		}
		start := time.Now()
		if _, err := node.Apply(command.Submit{Tasks: []fsm.NewTask{{Type: "a", Params: []byte("1")}}}); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			b, err := f.next()
			if err != nil || b.comment == "" || b.id != "1.1" || b.data != "" {
				t.Fatalf("block %d: %+v, %v", i, b, err)
			}
		}
		if took := time.Since(start); took < 12*time.Second || took > 18*time.Second {
			t.Errorf("5 signs of life took %s", took)
		}
		s.Drain()
		if b, err := f.next(); err == nil {
			t.Errorf("after the drain: %+v", b)
		}
	})
}

// TestStream_SleepingClient checks that a client that reads nothing holds a stream only for a limited time, and a
// draining server for a moment only.
func TestStream_SleepingClient(t *testing.T) {
	t.Parallel()
	for _, drain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := setup(t)
			client, server := net.Pipe() // without a buffer
			defer client.Close()
			if !s.feed.Open() {
				t.Fatal("no stream may be opened")
			}
			st := &stream{server: s.core, feed: s.feed, key: t.Context(), leave: s.feed.Close, conn: server}
			defer st.Close()
			want := streamWriteTimeout
			if drain {
				want = streamEndTimeout
				time.AfterFunc(time.Second, s.Drain)
			}
			start := time.Now()
			if _, err := st.Read(nil); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the stream ended with %v", err)
			}
			if took := time.Since(start); took > want+time.Second {
				t.Errorf("drain %v: the stream ended after %s", drain, took)
			}
		})
	}
}

// TestFeed_Looks checks that the trail is read no more often than permitted, however many events and streams there
// are.
func TestFeed_Looks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		for range 3 {
			s.feed.Open()
		}
		synctest.Wait()
		looks := 0
		node.OnRead = func(context.Context, uint64) error { looks++; return nil }
		for range 1_000 {
			if _, err := node.Apply(command.Submit{Tasks: []fsm.NewTask{{Type: "a", Params: []byte("1")}}}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Millisecond)
		}
		synctest.Wait()
		if most := int(time.Second/trail.LookInterval) + 1; looks > most || looks < most/2 {
			t.Errorf("%d looks in a second, want %d", looks, most)
		}
		for range 3 {
			s.feed.Close()
		}
		s.feed.Wait()
	})
}
