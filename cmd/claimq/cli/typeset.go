package cli

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/timespan"
)

type typeSetOptions struct {
	pause, resume         bool
	maxClaimed, rateLimit string
	maxPerKey             string
	fair                  bool
	delay, deadLetter     string
	taskDefaults
}

// NewTypeCommand returns the command `claimq type`.
func NewTypeCommand(a *term.App) *cobra.Command {
	return term.Group(&cobra.Command{
		Use:     "type",
		Short:   "Show a task type, or change its settings",
		Example: "  claimq type show mail\n  claimq type set mail --pause",
	}, newTypeShowCommand(a), newTypeSetCommand(a))
}

func newTypeShowCommand(a *term.App) *cobra.Command {
	return session.Look(a, &cobra.Command{
		Use:     "show TYPE",
		Short:   "Show the settings and counts of a task type",
		Example: "  claimq type show mail",
	}, func(args []string) (string, error) { return typePath(args[0]), nil }, func(answer *wire.Types) error { return showType(a, answer.Type) })
}

func newTypeSetCommand(a *term.App) *cobra.Command {
	var o typeSetOptions
	cmd := &cobra.Command{
		Use:   "set TYPE",
		Short: "Change the settings of a task type",
		Long: `Change the settings of a task type, even before it has tasks. Settings without a flag
stay as they are; none clears a setting. A pause and the limits affect new claims
only: present claims continue.`,
		Example: `  claimq type set mail --pause
  claimq type set mail --resume --max-claimed 10 --rate-limit 2.5
  claimq type set report --lease 10m --max-attempts 5 --backoff 1s,10m,2,0.2 --retention 30d
  claimq type set mail --rate-limit none`,
	}
	session.Command(a, cmd, func(args []string) (session.Request, error) {
		fields, err := o.patch(cmd.Flags())
		if err != nil {
			return session.Request{}, err
		}
		return session.Patch(typePath(args[0]), fields, setsAgain)
	}, func(_ []string, answer *wire.Types) error { return showType(a, answer.Type) })
	f := cmd.Flags()
	f.BoolVar(&o.pause, "pause", false, "stop claims of this type, except by id")
	f.BoolVar(&o.resume, "resume", false, "end the pause")
	f.StringVar(&o.maxClaimed, "max-claimed", "", "how many of its tasks are claimed at a time, or none")
	f.StringVar(&o.maxPerKey, "max-claimed-per-key", "", "how many of its tasks with the same share key are claimed at a time, or none")
	f.BoolVar(&o.fair, "fair", false, "let its share keys take turns; --fair=false ends that")
	f.StringVar(&o.rateLimit, "rate-limit", "", "claims per second, as 0.5 or 100, or none")
	f.StringVar(&o.delay, "delay", "", "delay of tasks submitted with neither a delay nor a time, as 2m, or none")
	f.StringVar(&o.deadLetter, "dead-letter", "", "type that gets copies of tasks whose last attempt failed, as mail-dead, or mail-dead,5: after 5 attempts; or none")
	o.addTo(f, "its tasks' default")
	term.OnlyExplicit(cmd)
	return cmd
}

// patch builds the request body. A null clears a field; missing fields do not change.
func (o *typeSetOptions) patch(flags *pflag.FlagSet) (map[string]any, error) {
	fields := map[string]any{}
	if flags.Changed("fair") {
		fields["fair"] = o.fair
	}
	switch {
	case o.pause && o.resume:
		return nil, term.UsageErrorf("--pause and --resume are both given: give one of them")
	case o.pause || o.resume:
		fields["paused"] = o.pause
	}
	settings := append([]setting{
		{"max_claimed", o.maxClaimed, func(v string) (any, error) { return parseCount("--max-claimed", v) }},
		{"max_claimed_per_key", o.maxPerKey, func(v string) (any, error) { return parseCount("--max-claimed-per-key", v) }},
		{"rate_limit", o.rateLimit, parseRate},
		{"delay_ms", o.delay, parseDelay},
		{"dead_letter", o.deadLetter, parseDeadLetter},
	}, o.settings()...)
	if err := addSettings(fields, settings); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, term.UsageErrorf("say what to set: --pause, --resume, --max-claimed, --max-claimed-per-key, --fair, --rate-limit, --delay, --dead-letter, --lease, --max-attempts, --backoff or --retention")
	}
	return fields, nil
}

func typePath(name string) string { return "/api/types/" + url.PathEscape(name) }

// parseRate checks the number and returns it as the user wrote it.
func parseRate(value string) (any, error) {
	if f, err := strconv.ParseFloat(value, 64); err != nil || f < 0 || !json.Valid([]byte(value)) {
		return nil, term.UsageErrorf("--rate-limit is %q: it must be claims per second, as 0.5 or 100, or none", value)
	}
	return json.RawMessage(value), nil
}

func parseDelay(value string) (any, error) {
	d, err := timespan.Parse(value)
	if err != nil {
		return nil, term.UsageErrorf("--delay is %q: it must be a time as 30s or 2m, or none", value)
	}
	return wholeMS("--delay", d)
}

func parseDeadLetter(value string) (any, error) {
	name, most, limited := strings.Cut(value, ",")
	d := wire.DeadLetter{TaskType: name}
	if limited {
		n, err := strconv.ParseInt(most, 10, 32)
		if err != nil || n < 1 {
			return nil, term.UsageErrorf("--dead-letter is %q: it must be a task type, as mail-dead, with a number of attempts from 1, as mail-dead,5, or none", value)
		}
		d.MaxAttempts = int32(n)
	}
	return d, nil
}

// showType prints a type, one field per line.
func showType(a *term.App, t *wire.Type) error {
	if t == nil {
		return nil
	}
	var f term.Fields
	f.Add("type", term.Printable(t.TaskType))
	f.Add("paused", term.YesNo(t.Paused))
	words := settingsOf(&t.TypeSettings)
	for i, name := range []string{"max claimed", "max per key", "fair", "rate/s", "delay", "dead letter", "lease", "attempts", "backoff", "retention"} {
		f.Add(name, term.Cell(words[i]))
	}
	f.Add("pending", strconv.FormatInt(t.Counts["pending"], 10))
	f.Add("claimed", strconv.FormatInt(t.Counts["claimed"], 10))
	return term.Columns(a.Stdout, f)
}
