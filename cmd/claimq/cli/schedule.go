package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// planFlags holds the flags for the times of a schedule.
type planFlags struct {
	cron, timezone string
	every          time.Duration
}

func (p *planFlags) addPlanFlags(f *pflag.FlagSet) {
	f.StringVar(&p.cron, "cron", "", "when, as \"30 2 * * *\" or @daily")
	f.StringVar(&p.timezone, "timezone", "", "of --cron, as Europe/Prague; not given: UTC")
	term.DurationVar(f, &p.every, "every", 0, "in place of --cron: how often, a second or more")
}

// everyMS returns --every. Exactly one of --every and --cron must be given.
func (p *planFlags) everyMS() (int64, error) {
	switch {
	case (p.cron == "") == (p.every == 0):
		return 0, term.UsageErrorf("say when: --cron or --every, and one of them")
	case p.timezone != "" && p.cron == "":
		return 0, term.UsageErrorf("--timezone is given without --cron: --every counts from one slot to the next")
	}
	return wholeMS("--every", p.every)
}

type scheduleSetOptions struct {
	taskFlags
	stepsFlags
	planFlags
	overlap, catchUp string
	paused           bool
}

// NewScheduleCommand returns the command `claimq schedule`.
func NewScheduleCommand(a *term.App) *cobra.Command {
	return term.Group(&cobra.Command{
		Use:   "schedule",
		Short: "Submit tasks on a schedule",
		Example: `  claimq schedule set nightly report '{"all":true}' --cron "30 2 * * *" --timezone Europe/Prague
  claimq schedule list
  claimq schedule delete nightly`,
	}, newScheduleSetCommand(a), newScheduleListCommand(a), newScheduleGetCommand(a), newScheduleDeleteCommand(a), newScheduleSlotsCommand(a))
}

func newScheduleSetCommand(a *term.App) *cobra.Command {
	var o scheduleSetOptions
	cmd := &cobra.Command{
		Use:   "set NAME TYPE [PARAMS | @FILE | -]",
		Short: "Make a schedule, or replace one",
		Long: `Make a schedule, or replace the one with that name. At each of its times the schedule
submits exactly one task of TYPE with PARAMS, even if the leader changes.

--cron has five fields (minute, hour, day of the month, month, day of the week) or is
@hourly, @daily, @weekly, @monthly or @yearly, in the zone given by --timezone. A
time is skipped if the previous task has not ended, unless --overlap is allow. After
the cluster was down, one task makes up for all missed times. With --catch-up skip,
it makes up only for the last one, and only if that is at most 60 s late.

--steps gives the task steps, from a file as for 'claimq submit': each time, the task
is submitted with all of them, and has ended when they have.`,
		Example: `  claimq schedule set nightly report '{"all":true}' --cron "30 2 * * *" --timezone Europe/Prague
  claimq schedule set poll fetch --every 30s --catch-up skip
  claimq schedule set nightly report --steps steps.json --cron "30 2 * * *"
  claimq schedule set nightly report --cron "30 2 * * *" --paused`,
	}
	session.Command(a, cmd, func(args []string) (session.Request, error) {
		body, err := o.body(a, cmd, args[1:])
		if err != nil {
			return session.Request{}, err
		}
		return session.Put(schedulePath(args[0]), body, setsAgain)
	}, func(_ []string, answer *wire.Schedules) error { return showSchedule(a, answer.Schedule) })
	f := cmd.Flags()
	o.addPlanFlags(f)
	f.StringVar(&o.overlap, "overlap", "", "while the task before has not ended: skip (the default) or allow")
	f.StringVar(&o.catchUp, "catch-up", "", "times that were missed: one task for all of them (one, the default) or skip")
	f.BoolVar(&o.paused, "paused", false, "do not run it until it is set without this")
	o.addTaskFlags(f)
	o.addStepsFlags(f)
	for _, name := range []string{"key", "run-at", "expires-at", "expires-again", "unique", "unique-for", "attributes"} { // these make no sense for repeated submits
		_ = f.MarkHidden(name)
	}
	term.OnlyExplicit(cmd)
	return cmd
}

// body builds the request from the flags and arguments.
func (o *scheduleSetOptions) body(a *term.App, cmd *cobra.Command, args []string) ([]byte, error) {
	every, err := o.everyMS()
	if err != nil {
		return nil, err
	}
	task, err := o.task(cmd.Flags())
	if err != nil {
		return nil, err
	}
	if len(args) > 1 && args[1] == "-" && o.from == "-" {
		return nil, term.UsageErrorf("PARAMS and --steps cannot both be standard input")
	}
	steps, err := stepsFrom(a, &o.stepsFlags, task)
	if err != nil {
		return nil, err
	}
	var params []byte
	switch {
	case len(args) > 1:
		if params, err = jsonArgument(a, "PARAMS", args[1]); err != nil {
			return nil, err
		}
	case steps == nil: // a task with steps needs no params
		params = []byte("{}")
	}
	task.TaskType = args[0]
	raw, err := withRaw("steps", steps, task)
	if err != nil {
		return nil, err
	}
	return withRaw("task", withField("params", params, raw), wire.NewSchedule{
		Cron: o.cron, Timezone: o.timezone, EveryMS: every, Overlap: o.overlap, CatchUp: o.catchUp, Paused: o.paused,
	})
}

func newScheduleListCommand(a *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the schedules",
		Long: `List the schedules by name. With --output json each page of the server's answer is
one line, with up to 1,000 schedules and about 8 MiB.`,
		Example: "  claimq schedule list",
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, _ []string) (session.Act, error) {
		return func(s session.Talk) error { return listSchedules(cmd.Context(), s) }, nil
	})
	session.Within(cmd, session.LookTimeout)
	return cmd
}

func listSchedules(ctx context.Context, s session.Talk) error {
	var all []wire.Schedule
	for path := "/api/schedules"; ; {
		var page wire.Schedules
		shown, err := s.Call(ctx, session.Get(path), &page)
		if err != nil {
			return err
		}
		if !shown {
			all = append(all, page.Schedules...)
		}
		if page.Next == "" {
			if shown {
				return nil
			}
			return showSchedules(s.App, all)
		}
		path = "/api/schedules?after=" + url.QueryEscape(page.Next)
	}
}

func newScheduleGetCommand(a *term.App) *cobra.Command {
	return session.Look(a, &cobra.Command{
		Use:     "get NAME",
		Short:   "Show a schedule",
		Example: "  claimq schedule get nightly",
	}, func(args []string) (string, error) { return schedulePath(args[0]), nil }, func(answer *wire.Schedules) error { return showSchedule(a, answer.Schedule) })
}

func newScheduleDeleteCommand(a *term.App) *cobra.Command {
	return session.Command(a, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a schedule, but not the tasks it submitted",
		Example: "  claimq schedule delete nightly",
	}, func(args []string) (session.Request, error) {
		return session.Delete(schedulePath(args[0]), "Repeat the command: deleting twice does no harm.")
	}, func(args []string, _ *json.RawMessage) error {
		return a.Sayf("deleted schedule %s", term.Printable(args[0]))
	})
}

// slotsMax bounds the number of slots in one answer.
const slotsMax = 100

func newScheduleSlotsCommand(a *term.App) *cobra.Command {
	var plan planFlags
	var after string
	var limit int
	cmd := &cobra.Command{
		Use:   "slots",
		Short: "Show when a schedule would run",
		Example: `  claimq schedule slots --cron "30 2 * * 1-5" --timezone Europe/Prague
  claimq schedule slots --every 90s --after 2026-01-02T15:04:05Z --limit 3`,
	}
	session.Look(a, cmd, func([]string) (string, error) { return slotsPath(&plan, after, limit) },
		func(answer *wire.Slots) error { return showSlots(a, answer.Slots) })
	plan.addPlanFlags(cmd.Flags())
	cmd.Flags().StringVar(&after, "after", "", "times after this one, as 2026-01-02T15:04:05Z; of --every, the slot before; not given: now")
	cmd.Flags().IntVar(&limit, "limit", 10, "how many at most")
	return cmd
}

// slotsPath builds the request's path from the flags.
func slotsPath(plan *planFlags, after string, limit int) (string, error) {
	every, err := plan.everyMS()
	if err != nil {
		return "", err
	}
	at, err := parseTime("--after", after)
	if err != nil {
		return "", err
	}
	if limit < 1 || limit > slotsMax {
		return "", term.UsageErrorf("--limit is %d: it must be 1 to %d", limit, slotsMax)
	}
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"cron": plan.cron, "timezone": plan.timezone} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if every != 0 {
		q.Set("every_ms", strconv.FormatInt(every, 10))
	}
	if at != nil {
		q.Set("after", at.UTC().Format(time.RFC3339Nano))
	}
	return "/api/slots?" + q.Encode(), nil
}

func showSlots(a *term.App, slots []time.Time) error {
	if len(slots) == 0 {
		return a.Sayf("no slots: its time never comes")
	}
	for _, at := range slots {
		if err := a.Sayf("%s", a.ShowTime(at)); err != nil {
			return err
		}
	}
	return nil
}

func schedulePath(name string) string { return "/api/schedules/" + url.PathEscape(name) }

// showSchedules prints one row per schedule.
func showSchedules(a *term.App, schedules []wire.Schedule) error {
	if len(schedules) == 0 {
		return a.Sayf("no schedules")
	}
	rows := [][]string{{"NAME", "TYPE", "WHEN", "NEXT RUN (UTC)", "LAST TASK", "SKIPPED"}}
	for i := range schedules {
		s := &schedules[i]
		next := "-"
		if s.NextRunAt != nil {
			next = s.NextRunAt.UTC().Format(term.ExactTime)
		}
		if s.Paused {
			next = "paused"
		}
		rows = append(rows, []string{
			term.Cell(s.Name), term.Cell(taskTypeOf(s)), term.Cell(whenText(s)), next, term.CellOf(s.LastTaskID), strconv.FormatUint(s.Skipped, 10),
		})
	}
	return a.Table(rows, "SKIPPED", "LAST TASK")
}

// taskTypeOf returns the type of the tasks that a schedule submits.
func taskTypeOf(s *wire.Schedule) string {
	if s.Task.TaskType == "" {
		return "default"
	}
	return s.Task.TaskType
}

// whenText says when a schedule runs.
func whenText(s *wire.Schedule) string {
	switch {
	case s.EveryMS != nil:
		return "every " + term.ShowMS(*s.EveryMS)
	case s.Cron == nil:
		return ""
	case s.Timezone != nil:
		return *s.Cron + " " + *s.Timezone
	}
	return *s.Cron
}

// showSchedule prints a schedule, one field per line.
func showSchedule(a *term.App, s *wire.Schedule) error {
	if s == nil {
		return nil
	}
	var f term.Fields
	f.Add("name", term.Printable(s.Name))
	f.Add("when", term.Printable(whenText(s)))
	switch {
	case s.Paused:
		f.Add("next run", "none: it is paused")
	case s.NextRunAt == nil:
		f.Add("next run", "none: its time never comes again")
	default:
		f.Add("next run", a.ShowTime(*s.NextRunAt))
	}
	if s.LastTaskID != nil && s.LastRunAt != nil {
		f.Add("last run", a.ShowTime(*s.LastRunAt)+", task "+strconv.FormatUint(*s.LastTaskID, 10))
	}
	f.Add("overlap", term.Printable(s.Overlap))
	f.Add("catch up", term.Printable(s.CatchUp))
	if s.Skipped > 0 {
		f.Add("skipped", strconv.FormatUint(s.Skipped, 10))
	}
	f.Add("type", term.Printable(taskTypeOf(s)))
	f.AddSome("params", a.Value(s.Task.Params, s.Task.Payload))
	for i := range s.Task.Steps {
		f.Add("step", newStepText(&s.Task.Steps[i]))
	}
	return term.Columns(a.Stdout, f)
}
