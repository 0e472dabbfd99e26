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

// Ask makes one request to a node, without a body, and decodes the answer, which must be a
// success, into answer, like (*procs.Node).Ask.
type Ask func(ctx context.Context, method, path string, body, answer any) error

// ReadTrail reads a node's whole trail, oldest event first, with each event as
// answered. stale: from the node's own state. It ends with the newest event at the time of the
// last page, so nothing may be written meanwhile if the result should be from one moment. ctx
// bounds it. (It must not use the client library, which is under test, too.)
func ReadTrail(ctx context.Context, ask Ask, stale bool) ([]string, error) {
	return ReadTrailAfter(ctx, ask, "", stale) // begins with the oldest that is kept
}

// ReadTrailAfter is ReadTrail for events after a place.
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
		if page.Next == after { // the only sign that nothing follows
			return events, nil
		}
		after = page.Next
	}
}

// Trail reads the trail, page by page, from any node that answers.
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

// newestPage is requested to find the end of the trail.
const newestPage = "/api/events?limit=1"

// inLog parses the events of an answer, and replaces the indexes of the trail, which was
// at place when the log was at index, by those of the log. Events from before the last jump
// of places do not change.
func inLog(events []string, place string, index uint64) ([]history.Told, error) {
	trail, err := ParseTrail(events)
	at, ok := wire.ParsePlace(place)
	if err != nil || !ok || at.Index < index { // an older node answered: its places are the log's
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

// ParseTrail parses the events of an answer.
func ParseTrail(events []string) ([]history.Told, error) {
	trail := []history.Told{} // not nil: it was read even if it is empty
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
