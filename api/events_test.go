package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/nodes"
)

// eventsOf decodes the answer to a call for events.
func eventsOf(t testing.TB, a answer) wire.Events {
	t.Helper()
	a.good(t, 200)
	var out wire.Events
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

func TestServer_Events(t *testing.T) {
	t.Parallel()
	follower, s, _, _ := setupPair(t)
	s.call(t, "POST /api/tasks", `{"tasks":[{"task_type":"a","params":1},{"task_type":"b","params":1}]}`).good(t, 200)
	id, token := claimOne(t, s, "w")
	s.call(t, "POST /api/tasks/"+id+"/fail", `{"worker_id":"w","claim_token":`+token+`,"error":"no \"luck\""}`).good(t, 200)

	for _, c := range []struct{ query, want, next string }{
		{"", "1.0 level_raised, 1.1 submitted, 1.2 submitted, 2.0 claimed, 3.0 failed, 3.1 requeued", "3.1"},
		{"?after=1", "2.0 claimed, 3.0 failed, 3.1 requeued", "3.1"},
		{"?after=1.1", "1.2 submitted, 2.0 claimed, 3.0 failed, 3.1 requeued", "3.1"},
		{"?after=3.0", "3.1 requeued", "3.1"},
		{"?after=3", "", "3"},
		{"?after=3.1", "", "3.1"},
		{"?after=3.9", "", "3.9"},
		{"?after=900.7&consistency=stale", "", "900.7"}, // the node may be behind
		{"?after=0", "1.0 level_raised, 1.1 submitted, 1.2 submitted, 2.0 claimed, 3.0 failed, 3.1 requeued", "3.1"},
		{"?limit=2&after=1.0", "1.1 submitted, 1.2 submitted", "1.2"},
		{"?task_type=b", "1.2 submitted", "3.1"},
		{"?worker_id=w&consistency=stale", "2.0 claimed, 3.0 failed, 3.1 requeued", "3.1"},
		{"?event=submitted&task_type=a", "1.1 submitted", "3.1"},
		{"?event=completed", "", "3.1"},
		{"?event=completed&event=failed&event=level_raised", "1.0 level_raised, 3.0 failed", "3.1"},
		{"?event=claimed&event=claimed&task_type=a", "2.0 claimed", "3.1"},
	} {
		got := eventsOf(t, s.call(t, "GET /api/events"+c.query, ""))
		if brief(got.Events) != c.want || got.Next != c.next || got.Place != "3" {
			t.Errorf("%s:\n got %s, next %s, place %s\nwant %s, next %s, place 3", c.query, brief(got.Events), got.Next, got.Place, c.want, c.next)
		}
		if c.query == "" {
			if d := cmp.Diff(got, eventsOf(t, follower.call(t, "GET /api/events", ""))); d != "" {
				t.Errorf("through a follower:\n%s", d)
			}
		}
	}
	one := s.call(t, "GET /api/events?after=2.0&limit=1", "").body
	want := `{"success":true,"events":[{"index":3,"sub":0,"time":"2026-03-01T12:00:00.000Z","task_id":1,"event":"failed","worker_id":"w","claim_token":1,"attempt":1,"message":"no \"luck\""}],"next":"3.0","place":"3"}`
	if one != want {
		t.Errorf("got  %s\nwant %s", one, want)
	}
	if first := s.call(t, "GET /api/events?limit=1", "").body; !strings.Contains(first, `"task_id":null,"event":"level_raised","worker_id":null,"claim_token":null,"attempt":null,"message":"`) {
		t.Errorf("an operator's act: %s", first)
	}
}

func TestServer_EventsRefused(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for query, field := range map[string]string{
		"after=": "after", "after=x": "after", "after=1.": "after", "after=.1": "after", "after=-1": "after", "after=%2B1": "after", "after=1.2.3": "after",
		"after=1.4294967296": "after", "after=18446744073709551616": "after", "after=1.%2B1": "after", "after=01": "after", "after=1.01": "after",
		"limit=0": "limit", "limit=1001": "limit", "limit=x": "limit",
		"task_type=%20": "task_type", "event=nothing": "event", "event=failed&event=nothing": "event", "event=": "event",
		"status=pending": "status", "task_id=1": "task_id",
	} {
		if f := s.call(t, "GET /api/events?"+query, "").refused(t, wire.CodeInvalidRequest); f["field"] != field {
			t.Errorf("%s: field %v", query, f["field"])
		}
	}
	s.call(t, "GET /api/events?worker_id=%20", "").refused(t, wire.CodeInvalidWorkerID)
	const accept = "Accept: text/event-stream"
	if f := s.call(t, "GET /api/events?limit=1", "", accept).refused(t, wire.CodeInvalidRequest); f["field"] != "limit" {
		t.Errorf("a limit of a stream: field %v", f["field"])
	}
	if f := s.call(t, "GET /api/events", "", accept, "Last-Event-ID: x").refused(t, wire.CodeInvalidRequest); f["field"] != "Last-Event-ID" {
		t.Errorf("a bad Last-Event-ID: field %v", f["field"])
	}
	if n := s.feed.Count(); n != 0 {
		t.Errorf("%d streams are counted", n)
	}
}

// A place that the trail has not reached is refused by name, for pages and at the beginning of a stream. A node that
// is behind first catches up.
func TestServer_EventsAhead(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1}`)
	for _, header := range []string{"X: y", "Accept: text/event-stream"} {
		for _, after := range []string{"2", "2.0", "1795902074663014.0"} {
			f := s.call(t, "GET /api/events?after="+after, "", header).refused(t, wire.CodePlaceAhead)
			if text := f["error"].(string); f["place"] != "1" || !strings.HasSuffix(text, "it is at 1") {
				t.Errorf("after=%s, %s: place is %v: %s", after, header, f["place"], text)
			}
		}
	}
	s.call(t, "GET /api/events", "", "Accept: text/event-stream", "Last-Event-ID: 2.0").refused(t, wire.CodePlaceAhead)
	if n := s.feed.Count(); n != 0 {
		t.Errorf("%d streams are counted", n)
	}

	node.OnCatchUp = func(context.Context) error { return nodes.ErrNoLeader }
	s.call(t, "GET /api/events?after=2.0", "", "Accept: text/event-stream").refused(t, wire.CodeNoLeader)
	node.OnCatchUp = func(context.Context) error {
		nodetest.SubmitTo(t, node, 1)
		return nil
	}
	stream := openStream(t, listen(t, s), "/api/events?after=2.0")
	if at := stream.begin(); at != "2.0" {
		t.Errorf("a stream that goes on at a node that was behind begins at %s", at)
	}
}

// TestServer_EventsGone checks the refusal of a place that is no longer kept, and that it names a place to continue
// without a gap.
func TestServer_EventsGone(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1}`)
	nodetest.LoseTrail(t, node)
	for _, header := range []string{"X: y", "Accept: text/event-stream"} {
		for _, after := range []string{"0", "1", "1.0"} {
			f := s.call(t, "GET /api/events?after="+after, "", header).refused(t, wire.CodeEventsGone)
			if text := f["error"].(string); f["oldest"] != "4.0" || !strings.HasSuffix(text, "the oldest is 4.0") {
				t.Errorf("after=%s, %s: oldest is %v: %s", after, header, f["oldest"], text)
			}
		}
	}
	for _, query := range []string{"", "?after=2", "?after=3"} {
		if got := eventsOf(t, s.call(t, "GET /api/events"+query, "")); brief(got.Events) != "4.0 trail_changed" {
			t.Errorf("%s: %s", query, brief(got.Events))
		}
	}
}

func TestServer_TaskEvents(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	submitOne(t, s, `{"params":1}`)
	submitOne(t, s, `{"params":2}`)
	id, token := claimOne(t, s, "w")
	s.call(t, "POST /api/tasks/"+id+"/complete", `{"worker_id":"w","claim_token":`+token+`}`).good(t, 200)
	s.call(t, "DELETE /api/tasks/1", "").good(t, 200)
	if got := eventsOf(t, s.call(t, "GET /api/tasks/1/events", "")); brief(got.Events) != "1.1 submitted, 3.0 claimed, 4.0 completed, 5.0 deleted" || got.Next != "5.0" {
		t.Errorf("a task that was deleted: %s, next %s", brief(got.Events), got.Next)
	}
	if got := eventsOf(t, s.call(t, "GET /api/tasks/2/events", "")); brief(got.Events) != "2.0 submitted" || got.Next != "5.0" {
		t.Errorf("a task that waits: %s, next %s", brief(got.Events), got.Next)
	}
	s.call(t, "GET /api/tasks/3/events", "").refused(t, wire.CodeTaskNotFound)
	s.call(t, "GET /api/tasks/2/events?limit=1", "").refused(t, wire.CodeInvalidRequest)
}
