package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	pageTimeout  = 5 * time.Second
	retryPause   = 50 * time.Millisecond
	finalLimit   = "1000"
	includeParts = "result"
)

// ReadFinal reads every task into the history. No caller may be at work: the
// pages are not of one moment.
func (r *Recorder) ReadFinal(ctx context.Context, nodes []string) error {
	final := &history.Final{Call: r.Now()}
	cursor := ""
	for {
		query := url.Values{"limit": {finalLimit}, "include": {includeParts}, "order": {"asc"}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var page wire.Answer
		if err := r.ask(ctx, nodes, "/api/tasks?"+query.Encode(), &page); err != nil {
			return fmt.Errorf("read the state at the end: %w", err)
		}
		for i := range page.Tasks {
			if page.Tasks[i].TaskType != history.TickType {
				final.Tasks = append(final.Tasks, *seen(&page.Tasks[i]))
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	final.Return = r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.final = final
	return nil
}

// OpenCount returns how many tasks have not ended, without those of the schedule.
func (r *Recorder) OpenCount(ctx context.Context, nodes []string) (int64, error) {
	var stats wire.Stats
	if err := r.ask(ctx, nodes, "/api/stats", &stats); err != nil {
		return 0, fmt.Errorf("count the tasks: %w", err)
	}
	scheduled := stats.Counts["scheduled"] - stats.Types[history.TickType]["scheduled"]
	return scheduled + stats.Counts["pending"] + stats.Counts["claimed"] + stats.Counts["blocked"] + stats.Counts["running"], nil
}

// ask reads path into answer from whichever node answers, until ctx ends. It
// is not part of the history.
func (r *Recorder) ask(ctx context.Context, nodes []string, path string, answer any) error {
	for n := 0; ; n++ {
		err := r.askOne(ctx, nodes[n%len(nodes)]+path, answer)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(retryPause):
		}
	}
}

func (r *Recorder) askOne(ctx context.Context, target string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: status %d", target, resp.StatusCode)
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
