package told

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	pageLimit   = "1000" // the most that a node gives
	pageTimeout = 10 * time.Second
)

// Read reads the whole trail as the node of that URL tells it, oldest event first,
// each as it was answered. stale: it tells its own state. It ends with what was the
// newest event when the last page was read: nothing may be written meanwhile if that
// is to be one moment. The context bounds it.
func Read(ctx context.Context, client *http.Client, node string, stale bool) ([]string, error) {
	var events []string
	after := "" // begins with the oldest that is kept
	for {
		query := url.Values{"limit": {pageLimit}}
		if stale {
			query.Set("consistency", "stale")
		}
		if after != "" {
			query.Set("after", after)
		}
		page, err := readPage(ctx, client, node+"/api/events?"+query.Encode())
		if err != nil {
			return nil, fmt.Errorf("read the trail behind %q: %w", after, err)
		}
		for _, e := range page.Events {
			events = append(events, string(e))
		}
		if page.Next == after { // the only sign that there is nothing behind it
			return events, nil
		}
		after = page.Next
	}
}

type page struct {
	Events []json.RawMessage `json:"events"`
	Next   string            `json:"next"`
}

func readPage(ctx context.Context, client *http.Client, target string) (p page, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return p, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return p, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return p, fmt.Errorf("status %d", resp.StatusCode)
	}
	return p, json.NewDecoder(resp.Body).Decode(&p)
}
