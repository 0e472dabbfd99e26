package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// Ask makes one request of a node, without a body, and reads the answer, which must be a
// success, into answer: as (*procs.Node).Ask does.
type Ask func(ctx context.Context, method, path string, body, answer any) error

// ReadTrail reads the whole trail as a node tells it, oldest event first, each as it was
// answered. stale: it tells its own state. It ends with what was the newest event when the
// last page was read: nothing may be written meanwhile if that is to be one moment. The
// context bounds it. (It must not come through the client library, which is judged, too.)
func ReadTrail(ctx context.Context, ask Ask, stale bool) ([]string, error) {
	return ReadTrailAfter(ctx, ask, "", stale) // which begins with the oldest that is kept
}

// ReadTrailAfter is ReadTrail of what comes after a place.
func ReadTrailAfter(ctx context.Context, ask Ask, after string, stale bool) ([]string, error) {
	var events []string
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

// Trail reads the trail, page by page from whichever node answers.
func (r *Recorder) Trail(ctx context.Context, nodes []string) ([]history.Told, error) {
	events, err := ReadTrail(ctx, func(ctx context.Context, method, path string, body, answer any) error {
		_, err := r.askAny(ctx, nodes, method, path, body, answer)
		return err
	}, false)
	if err != nil {
		return nil, err
	}
	var page wire.Events
	index, err := r.askAny(ctx, nodes, http.MethodGet, newestPage, nil, &page)
	if err != nil {
		return nil, fmt.Errorf("ask where the trail is: %w", err)
	}
	return inLog(events, page.Place, index)
}

// newestPage is asked for where the trail is.
const newestPage = "/api/events?limit=1"

// inLog reads events as they were answered, with the indexes of the log in the place of those
// of the trail, which was at place when the log was at index. What was told before places last
// jumped stays where it was.
func inLog(events []string, place string, index uint64) ([]history.Told, error) {
	trail, err := ParseTrail(events)
	at, ok := wire.ParsePlace(place)
	if err != nil || !ok || at.Index < index { // a node of before it said so: its places are the log's
		return trail, err
	}
	ahead := at.Index - index
	for i := range trail {
		if trail[i].Index > ahead {
			trail[i].Index -= ahead
		}
	}
	return trail, nil
}

// ParseTrail reads events as they were answered.
func ParseTrail(events []string) ([]history.Told, error) {
	trail := []history.Told{} // of no event: it was read, too
	for _, text := range events {
		var e wire.Event
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, fmt.Errorf("read the trail: %w", err)
		}
		trail = append(trail, history.Told{
			Index: e.Index, Sub: e.Sub, At: e.Time.UnixMilli(), Kind: e.Event, Message: e.Message,
			TaskID: value(e.TaskID), Token: value(e.ClaimToken), Worker: value(e.WorkerID),
		})
	}
	return trail, nil
}
