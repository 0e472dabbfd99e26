package recorder

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// ReadFinal records every task in the history. No caller may be active, because the pages
// are not from one moment.
func (r *Recorder) ReadFinal(ctx context.Context, nodes []string) error {
	final := &history.Final{Call: r.Now()}
	err := pages(url.Values{"include": {"params,result"}}, func(path string) (string, error) {
		var page wire.Answer
		_, err := r.askAny(ctx, nodes, http.MethodGet, path, nil, &page)
		for i := range page.Tasks {
			if page.Tasks[i].TaskType != history.Tick {
				final.Tasks = append(final.Tasks, *seen(&page.Tasks[i]))
			}
		}
		return page.NextCursor, err
	})
	if err != nil {
		return fmt.Errorf("read the state at the end: %w", err)
	}
	final.Return = r.Now()
	r.note(func(h *history.History) { h.Final = final })
	return nil
}

// OpenCount returns the number of tasks that have not ended, without those of the schedule.
func (r *Recorder) OpenCount(ctx context.Context, nodes []string) (int64, error) {
	var stats wire.Stats
	if _, err := r.askAny(ctx, nodes, http.MethodGet, "/api/stats", nil, &stats); err != nil {
		return 0, fmt.Errorf("count the tasks: %w", err)
	}
	scheduled := stats.Counts["scheduled"] - stats.Types[history.Tick]["scheduled"]
	return scheduled + stats.Counts["pending"] + stats.Counts["claimed"] + stats.Counts["blocked"] + stats.Counts["running"], nil
}
