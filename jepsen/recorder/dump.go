package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

// errMoved is returned when a node's state changed while it was read.
var errMoved = errors.New("the state changed while it was read")

// DumpAll reads everything that each node holds, from its own state, at the same index if
// possible, and records it. Nothing may be written meanwhile. Because ticks increase the
// index, it tries until the nodes agree or ctx ends, and then records the last answers.
func (r *Recorder) DumpAll(ctx context.Context, nodes, names []string) error {
	var dumps []history.Dump
	var trail []history.Told
	err := pause.Until(ctx, retryPause, func() (err error) {
		dumps, trail, err = r.dumpOnce(ctx, nodes, names)
		for i := range dumps {
			if dumps[i].Index != dumps[0].Index {
				err = errMoved
			}
		}
		return err
	})
	if len(dumps) == 0 {
		return fmt.Errorf("read what the nodes hold: %w", err)
	}
	r.note(func(h *history.History) { h.Dumps, h.Trail = dumps, trail })
	return nil
}

func (r *Recorder) dumpOnce(ctx context.Context, nodes, names []string) ([]history.Dump, []history.Told, error) {
	var dumps []history.Dump
	var first, firstEvents []string
	var firstPlace wire.Events
	var firstIndex uint64
	var errs []error
	for i, node := range nodes {
		tasks, index, err := r.dump(ctx, node)
		var events []string
		if err == nil {
			events, err = ReadTrail(ctx, func(ctx context.Context, method, path string, body, answer any) error {
				_, err := r.ask(ctx, method, node+path, body, answer)
				return err
			}, true)
		}
		var page wire.Events
		var at uint64
		if err == nil && len(dumps) == 0 {
			at, err = r.ask(ctx, http.MethodGet, node+newestPage+"&consistency=stale", nil, &page)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", names[i], err))
			continue
		}
		d := history.Dump{
			Node: names[i], Index: index, Tasks: len(tasks), Hash: hashOf(tasks), Events: len(events), TrailHash: hashOf(events),
		}
		if len(dumps) == 0 {
			first, firstEvents, firstPlace, firstIndex = tasks, events, page, at
		} else {
			d.Differs, d.TrailDiffers = differs(first, tasks), differs(firstEvents, events)
		}
		dumps = append(dumps, d)
	}
	trail, err := inLog(firstEvents, firstPlace.Place, firstIndex)
	return dumps, trail, errors.Join(append(errs, err)...)
}

func hashOf(lines []string) string {
	sum := sha256.New()
	for _, l := range lines {
		sum.Write([]byte(l))
		sum.Write([]byte{'\n'})
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// differs describes the first difference of two states, "" if there is no difference.
func differs(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%s and %s", a[i], b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d of them", len(a), len(b))
	}
	return ""
}

// dump reads all tasks from the node's own state as JSON, and their index.
func (r *Recorder) dump(ctx context.Context, node string) (tasks []string, index uint64, err error) {
	err = pages(url.Values{"include": {"params,result"}, "consistency": {"stale"}}, func(path string) (string, error) {
		var page struct {
			Tasks      []map[string]json.RawMessage `json:"tasks"`
			NextCursor string                       `json:"next_cursor"`
		}
		at, err := r.ask(ctx, http.MethodGet, node+path, nil, &page)
		if err == nil && index != 0 && at != index {
			err = errMoved
		}
		index = at
		for _, t := range page.Tasks {
			// The rest of a lease is an estimate by the node's own clock.
			delete(t, "lease_remaining_ms")
			delete(t, "lease_expires_at")
			b, errJSON := json.Marshal(t) // sorted by name
			err = errors.Join(err, errJSON)
			tasks = append(tasks, string(b))
		}
		return page.NextCursor, err
	})
	return tasks, index, err
}
