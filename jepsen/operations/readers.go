package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

// told is an event: its place, and its other contents.
type told struct{ place, text string }

// reader reads the trail before all disks are lost, and continues at its place once the backup is
// restored: it must miss nothing and see nothing twice, or be told that it cannot continue there.
type reader struct {
	name string
	read func(r *run, ctx context.Context, after string) ([]told, error)

	place string         // of the last event read
	seen  map[string]int // by text
	// kept returns all events that the reader was sent so far without asking; nil if it only reads
	// when asked.
	kept func() ([]told, error)
}

// readOn lets each reader read everything that is there. Readers that are sent events must have the
// same events as the pages.
func (r *run) readOn(ctx context.Context) error {
	r.readers = []*reader{{name: "by pages", read: (*run).pages}, {name: "the client's walk", read: (*run).walk}}
	for _, n := range r.cluster.Nodes[:firstNodes] { // the restored cluster has these, by name
		if file := r.auditFile(n); n.Running() {
			r.readers = append(r.readers, telling("of the audit file of "+n.ID, func() ([]told, error) { return audited(file) }))
		}
	}
	live, err := r.follow()
	if err != nil {
		return err
	}
	r.readers = append(r.readers, live...)
	for _, one := range r.readers {
		events, err := one.read(r, ctx, "")
		if err != nil {
			return err
		}
		one.has(events)
		if missed := missing(r.readers[0].seen, one.seen); one.kept != nil && missed > 0 {
			r.report.found(ruleReader, nil, "a reader %s was not told %d of the events that were told by pages", one.name, missed)
		}
	}
	return nil
}

// has records the events that the reader has read.
func (one *reader) has(events []told) {
	one.seen = counted(events)
	for _, e := range events {
		one.place = e.place
	}
}

// lastWords lets readers that are sent events take those that came until all disks were lost.
func (r *run) lastWords() error {
	for _, one := range r.readers {
		if one.kept == nil {
			continue
		}
		events, err := one.kept()
		if err != nil {
			return err
		}
		one.has(events)
	}
	return nil
}

// attend lets readers that are sent events catch up with the trail of the empty cluster. So they
// follow its nodes, with places of its trail, when the backup is restored.
func (r *run) attend(ctx context.Context) {
	for _, one := range r.readers {
		if one.kept != nil {
			_, _ = one.read(r, ctx, one.place) // errors show when the readers are judged
		}
	}
}

// auditFile returns the audit file of the node. It is not on the disk that is lost: the node of the
// same name in the restored cluster continues it.
func (r *run) auditFile(n *procs.Node) string { return filepath.Join(r.cfg.Dir, n.ID+".audit") }

// tellTimeout bounds the wait until a reader was sent the events in the trail.
const tellTimeout = 15 * time.Second

// telling returns a reader that is sent events without asking. It is read once it has the events in
// the trail, or after a timeout: those that are missing then count as missing.
func telling(name string, kept func() ([]told, error)) *reader {
	return &reader{name: name, kept: kept, read: func(r *run, ctx context.Context, after string) (events []told, err error) {
		all, err := r.pages(ctx, "")
		if err != nil || len(all) == 0 {
			return nil, err
		}
		newest := all[len(all)-1].place
		ctx, cancel := context.WithTimeout(ctx, tellTimeout)
		defer cancel()
		_ = pause.Until(ctx, pollPause, func() error {
			if events, err = kept(); err == nil && at(events, newest) < 0 {
				return fmt.Errorf("a reader %s has not come to %s", name, newest)
			}
			return nil
		})
		if back := goesBack(events); back != "" {
			r.report.found(ruleReader, nil, "a reader %s is told %s", name, back)
		}
		return events[at(events, after)+1:], err
	}}
}

// goesBack says where places do not increase, "" if they always do.
func goesBack(events []told) string {
	var last [2]uint64
	for i, e := range events {
		var next [2]uint64 // INDEX.SUB
		if _, err := fmt.Sscanf(e.place, "%d.%d", &next[0], &next[1]); err != nil {
			return fmt.Sprintf("the place %q", e.place)
		}
		if i > 0 && slices.Compare(next[:], last[:]) <= 0 {
			return fmt.Sprintf("%s behind %s", e.place, events[i-1].place)
		}
		last = next
	}
	return ""
}

// at returns the index of the event with that place, -1 if no event has it.
func at(events []told, place string) int {
	return slices.IndexFunc(events, func(e told) bool { return e.place == place })
}

// audited reads an audit file.
func audited(file string) ([]told, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var events []told
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") { // cut by a kill, or being written
			break
		}
		e, err := read(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// judgeReaders lets each reader continue in the restored cluster.
func (r *run) judgeReaders(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
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

// judgeReader lets the reader continue in a cluster with this trail.
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
	got := counted(events)
	missed, twice := missing(want, got), 0
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

// missing returns the number of wanted events that are not in got.
func missing(want, got map[string]int) (missed int) {
	for text, n := range want {
		missed += max(n-got[text], 0)
	}
	return missed
}

// pages reads the trail page by page.
func (r *run) pages(ctx context.Context, after string) ([]told, error) {
	raw, err := recorder.ReadTrailAfter(ctx, r.askLeader, after, false)
	if err != nil {
		return nil, err
	}
	var events []told
	for _, text := range raw {
		one, err := read(text)
		if err != nil {
			return nil, err
		}
		events = append(events, one)
	}
	return events, nil
}

// askLeader asks the current leader, and retries while there is no leader.
func (r *run) askLeader(ctx context.Context, method, path string, body, answer any) (err error) {
	again := pause.Until(ctx, pollPause, func() error {
		leader, errNone := r.cluster.WaitLeader(ctx)
		if errNone != nil {
			return errNone
		}
		if err = leader.Ask(ctx, method, path, body, answer); err != nil && strings.Contains(err.Error(), "status 503") {
			return err
		}
		return nil
	})
	return errors.Join(again, err)
}

// read parses an event in the format of the API.
func read(text string) (told, error) {
	var e wire.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return told{}, err
	}
	id, token := "", int64(0)
	if e.TaskID != nil {
		id = strconv.FormatUint(*e.TaskID, 10)
	}
	if e.ClaimToken != nil {
		token = int64(*e.ClaimToken)
	}
	return tell(fmt.Sprintf("%d.%d", e.Index, e.Sub), e.Event, id, token, e.Time, e.Message), nil
}

// walk reads the trail with the Go client.
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
