package parents

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// state is what the cluster holds at the end.
type state struct {
	tasks  map[uint64]*held
	counts map[string]int64 // by status, as the cluster counts
	listed map[string]int64 // by status, as the list shows
	hashes []string         // of each node's list, by its own state
}

// held is a task as the list shows it.
type held struct {
	status, result, error, worker, key, step string
	parentID                                 uint64
}

// readState reads the state of every node, once nobody changes it any more.
func readState(ctx context.Context, c *caller) (*state, error) {
	s := &state{tasks: map[uint64]*held{}, listed: map[string]int64{}}
	var stats wire.Stats
	if err := c.again(ctx, http.MethodGet, "/api/stats", nil, &stats); err != nil {
		return nil, fmt.Errorf("count the tasks at the end: %w", err)
	}
	s.counts = stats.Counts
	for i, node := range c.nodes {
		take := s.take
		if i > 0 {
			take = nil // the same, if the hashes are
		}
		sum := sha256.New()
		if err := readNode(ctx, c.http, node, stats.Index, sum, take); err != nil {
			return nil, fmt.Errorf("read the state at the end of %s: %w", node, err)
		}
		s.hashes = append(s.hashes, fmt.Sprintf("%x", sum.Sum(nil)[:8]))
	}
	return s, nil
}

// take takes a page of the list.
func (s *state) take(page *wire.Answer) {
	for i := range page.Tasks {
		t := &page.Tasks[i]
		h := &held{status: t.Status, result: string(t.Result), error: t.Error, key: t.IdempotencyKey, step: t.Step, parentID: t.ParentID}
		if t.WorkerID != nil {
			h.worker = *t.WorkerID
		}
		s.tasks[t.ID] = h
		s.listed[t.Status]++
	}
}

// nodeTries is how often a page of a node is asked for.
const nodeTries = 100

// readNode reads the list of all tasks from the node's own state, which must have
// reached the index, into sum, and each page into take, if that is not nil.
func readNode(ctx context.Context, client *http.Client, node string, index uint64, sum hash.Hash, take func(*wire.Answer)) error {
	for cursor := ""; ; {
		query := url.Values{"limit": {"1000"}, "include": {"result"}, "order": {"asc"}, "consistency": {"stale"}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		raw, err := readPage(ctx, client, node+"/api/tasks?"+query.Encode(), index)
		for try := 1; err != nil && try < nodeTries; try++ {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(retryPause):
			}
			raw, err = readPage(ctx, client, node+"/api/tasks?"+query.Encode(), index)
		}
		if err != nil {
			return err
		}
		_, _ = sum.Write(raw) // never fails
		var page wire.Answer
		if take == nil {
			var next struct {
				NextCursor string `json:"next_cursor"`
			}
			err = json.Unmarshal(raw, &next)
			page.NextCursor = next.NextCursor
		} else {
			err = json.Unmarshal(raw, &page)
		}
		if err != nil {
			return err
		}
		if take != nil {
			take(&page)
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}

// readPage reads one page.
func readPage(ctx context.Context, client *http.Client, target string, index uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Claimq-Min-Index", strconv.FormatUint(index, 10))
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, raw)
	}
	return raw, err
}
