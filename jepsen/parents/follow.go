package parents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// errGone is returned when the trail could not be followed.
var errGone = errors.New("the trail is lost")

// follower follows the trail by server-sent events, from the beginning on. When
// a connection breaks, or after hop events, it goes on at the next node.
type follower struct {
	http   *http.Client
	nodes  []string // base URLs
	hop    int      // events of one connection
	ledger *Ledger
}

const hopDefault = 200_000

// run follows until ctx ends. It fails when a node refuses to go on, or tells
// what no ledger may hear.
func (f *follower) run(ctx context.Context) error {
	place := ""
	for i := 0; ctx.Err() == nil; i++ {
		var err error
		place, err = f.connect(ctx, f.nodes[i%len(f.nodes)], place)
		if errors.Is(err, errGone) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
	return nil
}

// connect follows at one node, behind place, and returns how far it got.
func (f *follower) connect(ctx context.Context, node, place string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, node+"/api/events?after=0", nil)
	if err != nil {
		return place, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if place != "" {
		req.Header.Set("Last-Event-ID", place)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		return place, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusGone:
		return place, fmt.Errorf("%w: %s keeps it no more behind %s", errGone, node, place)
	case resp.StatusCode != http.StatusOK:
		return place, errors.New(resp.Status)
	}
	return f.read(bufio.NewReaderSize(resp.Body, 1<<20), place)
}

var (
	fieldID    = []byte("id: ")
	fieldData  = []byte("data: ")
	fieldEvent = []byte("event: ")
)

// read takes the events of one connection. A block that was cut is none.
func (f *follower) read(r *bufio.Reader, place string) (string, error) {
	var id string
	var data []byte
	for n := 0; n < f.hop; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return place, err
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case bytes.HasPrefix(line, fieldID):
			id = string(line[len(fieldID):])
		case bytes.HasPrefix(line, fieldData):
			data = line[len(fieldData):]
		case bytes.HasPrefix(line, fieldEvent):
			return place, fmt.Errorf("%w behind %s: %s", errGone, place, line)
		case len(line) == 0:
			if data != nil {
				var e wire.Event
				if err := json.Unmarshal(data, &e); err != nil {
					return place, fmt.Errorf("%w: %q: %w", errGone, data, err)
				}
				f.ledger.tell(&e)
				n++
			}
			if id != "" {
				place = id
			}
			id, data = "", nil
		}
	}
	return place, nil
}
