package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

// told is an event: its place, and all else that is told of it.
type told struct{ place, text string }

// reader is one of the trail that has read it before all disks are lost, and goes on behind the
// place where it was once the backup is restored: it must miss nothing, and see nothing
// twice, or be told that it cannot go on there.
type reader struct {
	name string
	read func(r *run, ctx context.Context, after string) ([]told, error)

	place string         // of the last event that it has read
	seen  map[string]int // by text
}

// readOn has each reader read all that there is.
func (r *run) readOn(ctx context.Context) error {
	r.readers = []*reader{{name: "by pages", read: (*run).pages}, {name: "the client's walk", read: (*run).walk}}
	for _, one := range r.readers {
		events, err := one.read(r, ctx, "")
		if err != nil {
			return err
		}
		one.seen = counted(events)
		for _, e := range events {
			one.place = e.place
		}
	}
	return nil
}

// judgeReaders has each reader go on in the restored cluster.
func (r *run) judgeReaders(ctx context.Context) error {
	all, err := r.pages(ctx, "")
	if err != nil {
		return err
	}
	for _, one := range r.readers {
		if err := r.judgeReader(ctx, one, all); err != nil {
			return err
		}
	}
	return nil
}

// judgeReader has the reader go on in a cluster with this trail.
func (r *run) judgeReader(ctx context.Context, one *reader, all []told) error {
	want := counted(all)
	for text, n := range one.seen {
		want[text] -= n
	}
	events, err := one.read(r, ctx, one.place)
	if errors.Is(err, client.ErrPlaceAhead) || errors.Is(err, client.ErrEventsGone) || errors.Is(err, procs.ErrRefused) {
		fmt.Fprintf(r.cfg.Out, "a reader %s was told: %v\n", one.name, err)
		return nil
	}
	if err != nil {
		return err
	}
	missed, twice, got := 0, 0, counted(events)
	for text, n := range want {
		missed += max(n-got[text], 0)
	}
	for text, n := range got {
		twice += max(n-max(want[text], 0), 0)
	}
	if missed+twice > 0 {
		r.report.found(ruleReader, nil, "a reader %s that went on behind %s after the restore was told %d events: %d are missing, %d it had seen", one.name, one.place, len(events), missed, twice)
	}
	return nil
}

func counted(events []told) map[string]int {
	count := map[string]int{}
	for _, e := range events {
		count[e.text]++
	}
	return count
}

// pages reads the trail page by page.
func (r *run) pages(ctx context.Context, after string) ([]told, error) {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := recorder.ReadTrailAfter(ctx, leader.Ask, after, false)
	if err != nil {
		return nil, err
	}
	var events []told
	for _, text := range raw {
		var e wire.Event
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, err
		}
		id, token := "", int64(0)
		if e.TaskID != nil {
			id = strconv.FormatUint(*e.TaskID, 10)
		}
		if e.ClaimToken != nil {
			token = int64(*e.ClaimToken)
		}
		events = append(events, tell(fmt.Sprintf("%d.%d", e.Index, e.Sub), e.Event, id, token, e.Time, e.Message))
	}
	return events, nil
}

// walk reads the trail by the Go client.
func (r *run) walk(ctx context.Context, after string) (events []told, err error) {
	c, err := client.New(client.Config{Endpoints: r.cluster.URLs()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for e, err := range c.Events(ctx, client.EventFilter{After: after}) {
		if err != nil {
			return nil, err
		}
		events = append(events, tell(e.Place, e.Event, e.TaskID, e.Token, e.Time, e.Message))
	}
	return events, nil
}

func tell(place, event, task string, token int64, at time.Time, message string) told {
	return told{place, fmt.Sprintf("%s %s %d %d %s", event, task, token, at.UnixMilli(), message)}
}
