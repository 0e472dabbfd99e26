package neighbours

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

// heavy is a costly read: target is its path and query, field what its answer has.
type heavy struct{ target, field string }

// pages goes through the trail page by page.
const pages = "/api/events?limit=1000&after=%s"

// heavies are the costly reads.
var heavies = []heavy{
	{"/api/tasks?limit=1000&label=no:task", "tasks"},
	{"/api/tasks?limit=1000&worker_id=not-there&order=desc", "tasks"},
	{"/api/tasks?limit=1000&status=failed&order=ended", "tasks"},
	{"/api/tasks?limit=1000&order=desc&task_type=type-0&include=params,result", "tasks"},
	{"/api/tasks?limit=1000&parent_id=%d", "tasks"}, // its steps
	{"/api/failures?limit=1000", "failures"},
	{"/api/events?limit=1000&after=0&worker_id=not-there", "events"},
	{pages, "events"},
	{"/api/stats", "counts"},
	{"/api/types?limit=1000", "types"},
	{"/api/workers", "workers"},
	{"/api/schedules", "schedules"},
	{"/api/history", "kept"},
}

// largePage is as large as a page may be.
const largePage = "/api/tasks?limit=1000&include=params,result"

const (
	// readTimeout is longer than any read may take that is answered.
	readTimeout = 30 * time.Second
	// readPause is between two reads of a connection, about.
	readPause = 60 * time.Millisecond
	// slowBytes are read at once of such a page, then nothing for slowPause.
	slowBytes, slowPause = 64 << 10, 15 * time.Millisecond
	// answerMax bounds an answer.
	answerMax = 32 << 20
)

// reader is one connection of heavy reads.
type reader struct {
	*Neighbours
	key   string
	at    int // the node that it asks
	rng   *rand.Rand
	place string        // of the trail, to go on after
	took  time.Duration // the last read
	got   int           // bytes of its answer
}

// read asks until ctx ends.
func (r *reader) read(ctx context.Context) {
	r.place = "0"
	for pause.For(ctx, r.rest()) {
		good := false
		switch together, phase := r.phase(); phase {
		case rushes:
			good = r.askInRush(ctx, together, true)
		case crowds:
			good = r.ask(ctx, together, heavy{largePage, "tasks"}, true)
		default:
			good = r.ask(ctx, r.cfg.Nodes[r.at%len(r.cfg.Nodes)], heavies[r.rng.Intn(len(heavies))], false)
		}
		if !good {
			r.at++
			pause.For(ctx, retryPause+time.Duration(r.rng.Int63n(int64(retryPause))))
		}
	}
}

// rest returns the pause before the next read.
func (r *reader) rest() time.Duration {
	if _, phase := r.phase(); phase == rushes {
		return 0
	}
	return time.Duration(r.rng.ExpFloat64() * float64(readPause))
}

// targetOf is the target of the read now, "" if nothing is known to ask for.
func (r *reader) targetOf(ask heavy) string {
	switch {
	case bytes.Contains([]byte(ask.target), []byte("%s")):
		return fmt.Sprintf(ask.target, r.place)
	case bytes.Contains([]byte(ask.target), []byte("%d")):
		if r.parent.Load() == 0 {
			return ""
		}
		return fmt.Sprintf(ask.target, r.parent.Load())
	}
	return ask.target
}

// ask makes one read, and judges its answer. It reports whether it was answered with what was
// asked for.
func (r *reader) ask(ctx context.Context, node string, ask heavy, slow bool) bool {
	target := r.targetOf(ask)
	if target == "" {
		return true
	}
	asking, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	asked := time.Now()
	status, raw, err := r.get(asking, node+target, slow)
	r.took, r.got = time.Since(asked), len(raw)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		r.unanswered.Add(1)
		r.note(history.Unanswered, "GET %s at %s: %v", target, node, err)
		return false
	case status == http.StatusOK:
		if err = r.take(ask, raw); err == nil {
			r.answered.Add(1)
			return true
		}
	case later(status, raw):
		r.refused.Add(1)
		return false
	}
	r.note(history.Garbled, "GET %s at %s: status %d, %d bytes: %.300q (%v)", target, node, status, len(raw), raw, err)
	return false
}

// get makes one request and reads its answer.
func (r *reader) get(ctx context.Context, url string, slow bool) (status int, raw []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-API-Key", r.key)
	resp, err := r.readers.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if !slow {
		raw, err = io.ReadAll(io.LimitReader(resp.Body, answerMax))
		return resp.StatusCode, raw, err
	}
	var all bytes.Buffer
	for all.Len() < answerMax {
		n, err := io.CopyN(&all, resp.Body, slowBytes)
		if errors.Is(err, io.EOF) {
			return resp.StatusCode, all.Bytes(), nil
		}
		if err != nil {
			return resp.StatusCode, nil, err
		}
		if n == slowBytes {
			pause.For(ctx, slowPause)
		}
	}
	return resp.StatusCode, all.Bytes(), nil
}

// errField is returned for an answer without what was asked for, errMatches for one that should
// be empty.
var (
	errField   = errors.New("the answer has not what was asked for")
	errMatches = errors.New("something matches")
)

// take takes an answer that is to have what was asked for.
func (r *reader) take(ask heavy, raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	if string(fields["success"]) != "true" || fields[ask.field] == nil {
		return fmt.Errorf("%w: %s", errField, ask.field)
	}
	switch {
	case ask == heavies[0] || ask == heavies[1]:
		if string(fields[ask.field]) != "[]" {
			return errMatches
		}
	case fields["next"] != nil && ask.target == pages:
		return json.Unmarshal(fields["next"], &r.place)
	case ask.field == "tasks":
		var tasks []struct {
			Parent uint64 `json:"parent_id"`
		}
		if err := json.Unmarshal(fields["tasks"], &tasks); err != nil {
			return err
		}
		for _, t := range tasks {
			if t.Parent != 0 {
				r.parent.Store(t.Parent)
				break
			}
		}
	}
	return nil
}

// later reports whether the answer is a refusal that says to ask later.
func later(status int, raw []byte) bool {
	var refusal wire.Refusal
	if json.Unmarshal(raw, &refusal) != nil || refusal.Error == "" || refusal.Code.Status() != status {
		return false
	}
	switch refusal.Code {
	case wire.CodeOverloaded, wire.CodeNoLeader, wire.CodeShuttingDown:
		return true
	}
	return false
}

const (
	// largeBytes is the size of a task that makes pages large; largeType is its type.
	largeBytes, largeType = 256 << 10, "large"
	// largeDelayMS is longer than any run, so that these tasks are never claimed.
	largeDelayMS = 24 * 60 * 60 * 1000
)

// largeTask is the i-th large task. The payload is not in the history.
func (n *Neighbours) largeTask(i int) wire.NewTask {
	return wire.NewTask{
		TaskType: largeType, IdempotencyKey: fmt.Sprintf("large-%d-%d", n.cfg.Seed, i),
		Payload: bytes.Repeat([]byte{byte(i)}, largeBytes), DelayMS: new(int64(largeDelayMS)),
	}
}

// furnish submits as many large tasks as there are readers, so that pages are large.
func (n *Neighbours) furnish(ctx context.Context) {
	by := n.rec.Caller(n.cfg.Nodes, 0)
	for i := 0; i < n.cfg.Readers && ctx.Err() == nil; i++ {
		op := until(ctx, func() history.Op { return by.Submit(ctx, n.largeTask(i)) })
		n.large = append(n.large, op.TaskID)
	}
}

// clear cancels and deletes the large tasks: what is open is to end, and what is left is read.
func (n *Neighbours) clear(ctx context.Context) error {
	by := n.rec.Caller(n.cfg.Nodes, 0)
	for i, id := range n.large {
		if id == 0 {
			id = until(ctx, func() history.Op { return by.Submit(ctx, n.largeTask(i)) }).TaskID
		}
		for _, kind := range []history.Kind{history.Cancel, history.Delete} {
			op := until(ctx, func() history.Op { return by.Call(ctx, history.Op{Kind: kind, TaskID: id}) })
			if op.Outcome != history.OK && op.Code != string(wire.CodeTaskNotFound) {
				return fmt.Errorf("%w: %s a large task: %s %s", errNot, kind, op.Outcome, op.Code)
			}
		}
	}
	return nil
}
