package operations

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/procs"
)

// A reader of streams resumes with the id of the last whole block, until it is told that it cannot.
func TestEventSource(t *testing.T) {
	t.Parallel()
	block := func(index int) string {
		return fmt.Sprintf("data: {\"index\":%d,\"sub\":1,\"event\":\"submitted\",\"task_id\":7}\nid: %d.1\n\n", index, index)
	}
	streams := []string{
		"retry: 1000\nid: 0.0\n\n" + block(3) + block(4)[:30],
		": still here\nid: 3.7\n\n" + block(4) + "event: error\ndata: {\"code\":\"shutting_down\"}\n\n",
		"event: error\ndata: {\"code\":\"events_gone\"}\n\n",
	}
	var lasts []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lasts = append(lasts, r.Header.Get("Last-Event-ID"))
		_, _ = io.WriteString(w, streams[len(lasts)-1])
	}))
	t.Cleanup(server.Close)
	source := &eventSource{url: server.URL}
	source.run(t.Context())
	events, err := source.kept()
	if want := "[ 3.1 4.1]"; fmt.Sprint(lasts) != want {
		t.Errorf("it went on behind %q, want %q", fmt.Sprint(lasts), want)
	}
	if !errors.Is(err, procs.ErrRefused) || !strings.Contains(err.Error(), "events_gone") || len(events) != 2 || events[0].place != "3.1" || events[1].place != "4.1" {
		t.Errorf("told %v, and %v", events, err)
	}
}

// A stream that contains something other than events is found out.
func TestEventSource_noEvent(t *testing.T) {
	t.Parallel()
	source := &eventSource{}
	if err := source.read(strings.NewReader("data: 7\n\n"), new(string)); !errors.Is(err, errNoEvent) {
		t.Error(err)
	}
}

// A command that gives a reason when it ends was told so; otherwise its end is a finding.
func TestCommandEnded(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]error{
		"the trail has not come to this place (place_ahead)": client.ErrPlaceAhead, "they are kept no more (events_gone)": client.ErrEventsGone,
		"no node answered": nil,
	} {
		err := commandEnded(said)
		if told := errors.Is(err, client.ErrPlaceAhead) || errors.Is(err, client.ErrEventsGone); !errors.Is(err, errFollower) || told != (want != nil) || told && !errors.Is(err, want) {
			t.Errorf("%s: %v", said, err)
		}
	}
}
