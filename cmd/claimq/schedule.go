package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

type scheduleSetOptions struct {
	clientFlags
	taskFlags
	cron, timezone   string
	every            time.Duration
	overlap, catchUp string
	paused           bool
}

func newScheduleCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Submit tasks again and again, by the clock",
		Example: `  claimq schedule set nightly report '{"all":true}' --cron "30 2 * * *" --timezone Europe/Prague
  claimq schedule list
  claimq schedule delete nightly`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newScheduleSetCommand(a), newScheduleListCommand(a), newScheduleGetCommand(a), newScheduleDeleteCommand(a))
	return cmd
}

func newScheduleSetCommand(a *app) *cobra.Command {
	var o scheduleSetOptions
	cmd := &cobra.Command{
		Use:   "set NAME TYPE [PARAMS | @FILE | -]",
		Short: "Make a schedule, or replace the one of that name",
		Long: `Make a schedule, or replace the one of that name: it submits a task of TYPE with
PARAMS at each of its times, exactly one whatever happens to the leader.

--cron has five fields (minute, hour, day of the month, month, day of the week) or is
@hourly, @daily, @weekly, @monthly, @yearly; --timezone says where its clock hangs. While the
task before has not ended its time is passed over, unless --overlap allow. Times that were
missed while the cluster was down are made up by one task, unless --catch-up skip.`,
		Example: `  claimq schedule set nightly report '{"all":true}' --cron "30 2 * * *" --timezone Europe/Prague
  claimq schedule set poll fetch --every 30s --catch-up skip
  claimq schedule set nightly report --cron "30 2 * * *" --paused`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := o.body(a, cmd, args[1:])
			if err != nil {
				return err
			}
			return a.talk(&o.clientFlags, func(s session) error {
				var answer wire.Schedules
				r := client.Request{Method: http.MethodPut, Path: schedulePath(args[0]), Body: body, Repeatable: true}
				shown, err := s.call(cmd.Context(), r, "Repeat the command: it sets the same again.", &answer)
				if err != nil || shown || answer.Schedule == nil {
					return err
				}
				return a.showSchedule(answer.Schedule)
			})
		},
	}
	addClientFlags(a, cmd, &o.clientFlags)
	f := cmd.Flags()
	f.StringVar(&o.cron, "cron", "", "when, as \"30 2 * * *\" or @daily")
	f.StringVar(&o.timezone, "timezone", "", "of --cron, as Europe/Prague; not given: UTC")
	f.DurationVar(&o.every, "every", 0, "in place of --cron: how often, a second or more")
	f.StringVar(&o.overlap, "overlap", "", "while the task before has not ended: skip (the default) or allow")
	f.StringVar(&o.catchUp, "catch-up", "", "times that were missed: one task for all of them (one, the default) or skip")
	f.BoolVar(&o.paused, "paused", false, "do not run it until it is set without this")
	o.addTaskFlags(f)
	for _, name := range []string{"key", "run-at", "expires-at", "delay", "unique"} { // none for what is submitted again and again
		_ = f.MarkHidden(name)
	}
	onlyExplicit(cmd)
	return cmd
}

// body is the request that the flags and arguments describe.
func (o *scheduleSetOptions) body(a *app, cmd *cobra.Command, args []string) ([]byte, error) {
	params := []byte("{}")
	if len(args) > 1 {
		var err error
		if params, err = a.jsonArgument("PARAMS", args[1]); err != nil {
			return nil, err
		}
	}
	if (o.cron == "") == (o.every == 0) {
		return nil, usageErrorf("say when: --cron or --every")
	}
	task, err := o.task(cmd.Flags())
	if err != nil {
		return nil, err
	}
	task.TaskType = args[0]
	every, err := wholeMS("--every", o.every)
	if err != nil {
		return nil, err
	}
	raw, err := withRaw("params", params, task)
	if err != nil {
		return nil, err
	}
	return withRaw("task", raw, wire.NewSchedule{
		Cron: o.cron, Timezone: o.timezone, EveryMS: every, Overlap: o.overlap, CatchUp: o.catchUp, Paused: o.paused,
	})
}

func newScheduleListCommand(a *app) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the schedules",
		Example: "  claimq schedule list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.talk(&f, func(s session) error {
				var answer wire.Schedules
				shown, err := s.call(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/api/schedules"}, "", &answer)
				if err != nil || shown {
					return err
				}
				return a.showSchedules(answer.Schedules)
			})
		},
	}
	addClientFlags(a, cmd, &f)
	return cmd
}

func newScheduleGetCommand(a *app) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:     "get NAME",
		Short:   "Show a schedule",
		Example: "  claimq schedule get nightly",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.talk(&f, func(s session) error {
				var answer wire.Schedules
				shown, err := s.call(cmd.Context(), client.Request{Method: http.MethodGet, Path: schedulePath(args[0])}, "", &answer)
				if err != nil || shown || answer.Schedule == nil {
					return err
				}
				return a.showSchedule(answer.Schedule)
			})
		},
	}
	addClientFlags(a, cmd, &f)
	return cmd
}

func newScheduleDeleteCommand(a *app) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a schedule; the tasks that it submitted stay",
		Example: "  claimq schedule delete nightly",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.talk(&f, func(s session) error {
				var answer json.RawMessage
				r := client.Request{Method: http.MethodDelete, Path: schedulePath(args[0]), Repeatable: true}
				shown, err := s.call(cmd.Context(), r, "Repeat the command: deleting twice does no harm.", &answer)
				if err != nil || shown {
					return err
				}
				_, err = fmt.Fprintf(a.stdout, "deleted schedule %s\n", printable(args[0]))
				return err
			})
		},
	}
	addClientFlags(a, cmd, &f)
	return cmd
}

func schedulePath(name string) string { return "/api/schedules/" + url.PathEscape(name) }

// showSchedules prints a row a schedule.
func (a *app) showSchedules(schedules []wire.Schedule) error {
	if len(schedules) == 0 {
		_, err := fmt.Fprintln(a.stdout, "no schedules")
		return err
	}
	rows := [][]string{{"NAME", "TYPE", "WHEN", "NEXT RUN (UTC)", "LAST TASK", "SKIPPED"}}
	for i := range schedules {
		s := &schedules[i]
		next, last := "-", "-"
		if s.NextRunAt != nil {
			next = s.NextRunAt.UTC().Format(exactTime)
		}
		if s.Paused {
			next = "paused"
		}
		if s.LastTaskID != nil {
			last = strconv.FormatUint(*s.LastTaskID, 10)
		}
		rows = append(rows, []string{
			cell(s.Name), cell(taskTypeOf(s)), cell(whenText(s)), next, last, strconv.FormatUint(s.Skipped, 10),
		})
	}
	return a.table(rows, "SKIPPED", "LAST TASK")
}

// taskTypeOf is the type of the tasks that a schedule submits.
func taskTypeOf(s *wire.Schedule) string {
	if s.Task.TaskType == "" {
		return "default"
	}
	return s.Task.TaskType
}

// whenText is when a schedule runs.
func whenText(s *wire.Schedule) string {
	switch {
	case s.EveryMS != nil:
		return "every " + showMS(*s.EveryMS)
	case s.Cron == nil:
		return ""
	case s.Timezone != nil:
		return *s.Cron + " " + *s.Timezone
	}
	return *s.Cron
}

// showSchedule prints a schedule, one field a line.
func (a *app) showSchedule(s *wire.Schedule) error {
	var f fields
	f.add("name", printable(s.Name))
	f.add("when", printable(whenText(s)))
	switch {
	case s.Paused:
		f.add("next run", "none: it is paused")
	case s.NextRunAt == nil:
		f.add("next run", "none: its time never comes again")
	default:
		f.add("next run", a.showTime(*s.NextRunAt))
	}
	if s.LastTaskID != nil && s.LastRunAt != nil {
		f.add("last run", a.showTime(*s.LastRunAt)+", task "+strconv.FormatUint(*s.LastTaskID, 10))
	}
	f.add("overlap", printable(s.Overlap))
	f.add("catch up", printable(s.CatchUp))
	if s.Skipped > 0 {
		f.add("skipped", strconv.FormatUint(s.Skipped, 10))
	}
	f.add("type", printable(taskTypeOf(s)))
	f.addSome("params", a.value(s.Task.Params, s.Task.Payload))
	return columns(a.stdout, f)
}
