package parents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// stream writes events behind place, count of them at most, and cuts the next one.
func stream(w http.ResponseWriter, s *story, place string, count int) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range s.events {
		e := &s.events[i]
		var index uint64
		var sub uint32
		if _, err := fmt.Sscanf(place, "%d.%d", &index, &sub); err == nil && (e.Index < index || e.Index == index && e.Sub <= sub) {
			continue
		}
		b, _ := json.Marshal(e)
		if count--; count < 0 {
			fmt.Fprintf(w, "id: %d.%d\ndata: %s", e.Index, e.Sub, b[:len(b)/2])
			return
		}
		fmt.Fprintf(w, ": hello\n\nid: %d.%d\ndata: %s\n\n", e.Index, e.Sub, b)
	}
}

// A follower goes on behind what it has, at the next node, and takes no event
// twice, nor one that was cut; it gives up when the trail is lost.
func TestFollower_goesOn(t *testing.T) {
	t.Parallel()
	s := good()
	l := newLedger(func(*parent, bool) {})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) {
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case 20:
			cancel()
		}
		stream(w, s, r.Header.Get("Last-Event-ID"), 3)
	}))
	defer server.Close()
	f := &follower{http: server.Client(), nodes: []string{server.URL, server.URL}, hop: 100, ledger: l}
	if err := f.run(ctx); err != nil {
		t.Fatal(err)
	}
	for n := range s.shapes {
		l.register(s.shapes[n], s.ids[n])
	}
	l.judge(seed, s.state)
	if _, _, events := l.counts(); events != len(s.events) || len(l.violations) > 0 {
		t.Errorf("%d of %d events: %s", events, len(s.events), strings.Join(l.violations, "\n"))
	}
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	defer gone.Close()
	f.nodes = []string{gone.URL}
	if err := f.run(t.Context()); !errors.Is(err, errGone) {
		t.Errorf("the trail is gone: %v", err)
	}
	lost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "event: error\ndata: {}\n\n") }))
	defer lost.Close()
	f.nodes = []string{lost.URL}
	if err := f.run(t.Context()); !errors.Is(err, errGone) {
		t.Errorf("the trail is lost: %v", err)
	}
}

// A request is repeated at the next node until its outcome is known.
func TestCaller_again(t *testing.T) {
	t.Parallel()
	answers := []func(w http.ResponseWriter){
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter) { refuse(w, wire.CodeNoLeader) },
		func(w http.ResponseWriter) { refuse(w, wire.CodeOutcomeUnknown) },
		func(w http.ResponseWriter) { fmt.Fprint(w, `{"success":true,"repeated":true}`) },
		func(w http.ResponseWriter) { refuse(w, wire.CodeTaskFailed) },
		func(w http.ResponseWriter) { refuse(w, wire.CodeInternal) },
	}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		next := answers[0]
		answers = answers[1:]
		mu.Unlock()
		next(w)
	}))
	defer server.Close()
	var unknown atomic.Int64
	c := &caller{http: server.Client(), nodes: []string{server.URL, server.URL}, unknown: &unknown}
	ask := func() (wire.Answer, error) {
		var a wire.Answer
		err := c.again(t.Context(), http.MethodPost, "/", struct{}{}, &a)
		return a, err
	}
	if a, err := ask(); err != nil || !a.Repeated || unknown.Load() != 2 {
		t.Errorf("got %+v, %v after %d of unknown outcome", a, err, unknown.Load())
	}
	var no *refused
	if _, err := ask(); !errors.As(err, &no) || no.code != wire.CodeTaskFailed {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := ask(); !errors.Is(err, errOdd) {
		t.Errorf("a bug's answer: %v", err)
	}
}

func refuse(w http.ResponseWriter, code wire.Code) {
	w.WriteHeader(code.Status())
	_ = json.NewEncoder(w).Encode(wire.Refusal{Error: "no", Code: code})
}
