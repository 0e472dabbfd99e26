package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

type eventsOptions struct {
	filter client.EventFilter
	follow bool
}

// NewEventsCommand returns the command `claimq events`.
func NewEventsCommand(a *term.App) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:   "events [ID]",
		Short: "Show the events of a task or of the cluster",
		Long: `Show the last 100 events of a task or, without ID, the events of the cluster that are
still kept. --follow prints new events until Ctrl-C, even if the leader changes.
--after names the event to start after. With --output json each event is one line.`,
		Example: `  claimq events 17
  claimq events --type mail --event failed --event lease_expired
  claimq events --follow
  claimq events --follow --after 7041.2`,
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, args []string) (session.Act, error) {
		if len(args) == 0 {
			return func(s session.Talk) error { return events(cmd.Context(), s, &o) }, nil
		}
		id, err := session.ParseID(args[0])
		if err == nil && (o.follow || o.filter.TaskType+o.filter.WorkerID+o.filter.After != "" || len(o.filter.Events) > 0) {
			err = term.UsageErrorf("--follow and the filters are for the events of all tasks: leave the ID away")
		}
		return func(s session.Talk) error { return taskEvents(cmd.Context(), s, id) }, err
	})
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "keep printing new events")
	f.StringVar(&o.filter.TaskType, "type", "", "only of this task type")
	f.StringVar(&o.filter.WorkerID, "worker", "", "only of this worker's claims")
	f.StringArrayVar(&o.filter.Events, "event", nil, "only these: submitted, claimed, failed, lease_expired, completed, ...; repeatable: any of them")
	f.StringVar(&o.filter.After, "after", "", "only events after this place, as 7041.2")
	term.OnlyExplicit(cmd) // as for list
	return cmd
}

func taskEvents(ctx context.Context, s session.Talk, id uint64) error {
	var page wire.Events
	shown, err := s.Call(ctx, session.Get(session.TaskPath(id, "events")), &page)
	if err != nil || shown {
		return err
	}
	rows := [][]string{{"TIME (UTC)", "EVENT", "WORKER", "TOKEN", "ATTEMPT", "MESSAGE"}}
	for i := range page.Events {
		e := &page.Events[i]
		rows = append(rows, []string{
			e.Time.UTC().Format(term.ExactTime), term.Cell(e.Event), term.CellOf(e.WorkerID), term.CellOf(e.ClaimToken), term.CellOf(e.Attempt), term.Cell(e.Message),
		})
	}
	return s.App.Table(rows, "TOKEN")
}

// events prints the events of all tasks, one line each, as they arrive.
func events(ctx context.Context, s session.Talk, o *eventsOptions) error {
	walk := s.Client.Events
	if o.follow {
		walk = s.Client.Follow
	}
	for e, err := range walk(ctx, o.filter) {
		if err != nil {
			if o.follow && errors.Is(err, context.Canceled) {
				return nil // Ctrl-C is the way to end it
			}
			return &term.CallError{Err: err}
		}
		if err := showEvent(s, &e); err != nil {
			return err
		}
	}
	return nil
}

func showEvent(s session.Talk, e *client.Event) error {
	if s.Flags.Output == "json" {
		return term.ShowJSON(s.App.Stdout, lineOf(e))
	}
	about := ""
	if e.TaskID != "" {
		about = " task " + e.TaskID
	}
	if e.WorkerID != "" {
		about += " by " + term.Printable(e.WorkerID)
	}
	if e.Message != "" {
		about += ": " + s.App.Text(e.Message)
	}
	return s.App.Sayf("%s  %-10s %s%s", e.Time.UTC().Format(term.ExactTime), e.Place, term.Printable(e.Event), about)
}

// eventLine is one event as a line of JSON, as the server sends it.
type eventLine struct {
	Index      json.Number  `json:"index"`
	Sub        json.Number  `json:"sub"`
	Time       string       `json:"time"`
	TaskID     *json.Number `json:"task_id"`
	Event      string       `json:"event"`
	WorkerID   *string      `json:"worker_id"`
	ClaimToken *int64       `json:"claim_token"`
	Attempt    *int         `json:"attempt"`
	Message    string       `json:"message"`
}

func lineOf(e *client.Event) eventLine {
	index, sub, _ := strings.Cut(e.Place, ".")
	id := json.Number(e.TaskID)
	return eventLine{
		Index: json.Number(index), Sub: json.Number(sub), Time: e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), TaskID: unlessZero(&id),
		Event: e.Event, WorkerID: unlessZero(&e.WorkerID), ClaimToken: unlessZero(&e.Token), Attempt: unlessZero(&e.Attempt), Message: e.Message,
	}
}

// unlessZero returns v, or nil if it points to a zero value, so that JSON has null there.
func unlessZero[T comparable](v *T) *T {
	var zero T
	if *v == zero {
		return nil
	}
	return v
}
