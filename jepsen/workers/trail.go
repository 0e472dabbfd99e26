package workers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/told"
)

// readTrail reads the trail by HTTP alone, from whichever node answers, until ctx
// ends: the client library is under test here.
func (r *run) readTrail(ctx context.Context) ([]history.Told, error) {
	for nodes, n := r.cluster.URLs(), 0; ; n++ {
		events, err := told.Read(ctx, http.DefaultClient, nodes[n%len(nodes)], false)
		if err == nil {
			return told.Parse(events)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(drainPause):
		}
	}
}

// compareTrails looks whether the trail has gaps, and whether the client's walk has
// all of it, each event once. The walk may be longer: it began later.
func (e *evidence) compareTrails(r *Report) {
	for i := range e.trail {
		at := placeOf(&e.trail[i])
		if i > 0 && !follows(&e.trail[i-1], &e.trail[i]) {
			r.violate("the trail goes on with %s behind %s", at, placeOf(&e.trail[i-1]))
		}
		switch {
		case i >= len(e.walked):
			r.violate("the client's walk along the trail ends after %d of %d events, before %s", i, len(e.trail), at)
			return
		case e.walked[i].Place != at || e.walked[i].Event != e.trail[i].Kind:
			r.violate("the client's walk along the trail has %s %s as its event %d, not %s %s", e.walked[i].Place, e.walked[i].Event, i, at, e.trail[i].Kind)
			return
		}
	}
}

// follows reports whether told may come right after before.
func follows(before, told *history.Told) bool {
	if told.Index == before.Index {
		return told.Sub == before.Sub+1
	}
	return told.Index > before.Index && told.Sub == 0
}

func placeOf(told *history.Told) string { return fmt.Sprintf("%d.%d", told.Index, told.Sub) }
