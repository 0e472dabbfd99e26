package told

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// pageLimit is the most that a node gives.
const pageLimit = "1000"

// Ask makes one request of a node, without a body, and reads the answer, which must be a
// success, into answer: as (*procs.Node).Ask does.
type Ask func(ctx context.Context, method, path string, body, answer any) error

// Read reads the whole trail as a node tells it, oldest event first, each as it was
// answered. stale: it tells its own state. It ends with what was the newest event when the
// last page was read: nothing may be written meanwhile if that is to be one moment. The
// context bounds it.
func Read(ctx context.Context, ask Ask, stale bool) ([]string, error) {
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
		var page struct {
			Events []json.RawMessage
			Next   string
		}
		if err := ask(ctx, http.MethodGet, "/api/events?"+query.Encode(), nil, &page); err != nil {
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
