package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// tailPause is the pause before a tail connects again.
const tailPause = 20 * time.Millisecond

// tail follows the trail with server-sent events from its beginning. When a connection
// ends, or after hop events, it continues at the next of its nodes.
type tail struct {
	nodes []*procs.Node
	hop   int // events of one connection; 0 = unlimited

	mu     sync.Mutex // guards the fields below
	events []string   // as sent
	opened int        // connections

	grown chan struct{} // has an element when there are more events
}

func newTail(hop int, nodes ...*procs.Node) *tail {
	return &tail{nodes: nodes, hop: hop, grown: make(chan struct{}, 1)}
}

// errTail is returned when a node sends something wrong.
var errTail = errors.New("the stream of events is wrong")

// run follows until ctx ends. It fails when a node refuses to continue.
func (t *tail) run(ctx context.Context) error {
	place := ""
	for i := 0; ctx.Err() == nil; i++ {
		var err error
		place, err = t.connect(ctx, t.nodes[i%len(t.nodes)], place)
		if errors.Is(err, errTail) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(tailPause):
		}
	}
	return nil
}

// connect follows at one node, after place, and returns how far it got.
func (t *tail) connect(ctx context.Context, n *procs.Node, place string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL()+"/api/events?after=0", nil)
	if err != nil {
		return place, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if place != "" {
		req.Header.Set("Last-Event-ID", place)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return place, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusInternalServerError {
		return place, errors.New(resp.Status)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		return place, fmt.Errorf("%w: %s says %s", errTail, n.ID, resp.Status)
	}
	t.mu.Lock()
	t.opened++
	t.mu.Unlock()
	return t.read(bufio.NewReader(resp.Body), place)
}

// read reads the events of one connection. A truncated block is ignored.
func (t *tail) read(r *bufio.Reader, place string) (string, error) {
	var id, data, event string
	for n := 0; t.hop == 0 || n < t.hop; {
		line, err := r.ReadString('\n')
		if err != nil {
			return place, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			data = value
		case "event":
			event = value
		case "":
			if event != "" {
				return place, fmt.Errorf("%w: %s %s", errTail, event, data)
			}
			if id != "" {
				place = id
			}
			if data != "" {
				n++
				t.add(data)
			}
			id, data = "", ""
		}
	}
	return place, nil
}

func (t *tail) add(event string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event)
	select {
	case t.grown <- struct{}{}:
	default:
	}
}

// wait returns the first n events once they have come.
func (t *tail) wait(ctx context.Context, n int) ([]string, error) {
	for {
		t.mu.Lock()
		events := t.events
		t.mu.Unlock()
		if len(events) >= n {
			return events[:n], nil
		}
		select {
		case <-t.grown:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d events came: %w", len(events), n, ctx.Err())
		}
	}
}

// conns returns the number of opened connections.
func (t *tail) conns() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.opened
}
