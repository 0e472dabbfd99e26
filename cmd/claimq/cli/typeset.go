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
	maxPerKey, ratePerKey string
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
	f.StringVar(&o.ratePerKey, "rate-limit-per-key", "", "claims per second of its tasks with the same share key, or none")
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
		{"rate_limit", o.rateLimit, func(v string) (any, error) { return parseRate("--rate-limit", v) }},
		{"rate_limit_per_key", o.ratePerKey, func(v string) (any, error) { return parseRate("--rate-limit-per-key", v) }},
		{"delay_ms", o.delay, parseDelay},
		{"dead_letter", o.deadLetter, parseDeadLetter},
	}, o.settings()...)
	if err := addSettings(fields, settings); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, term.UsageErrorf("say what to set: --pause, --resume, --max-claimed, --max-claimed-per-key, --rate-limit-per-key, --fair, --rate-limit, --delay, --dead-letter, --lease, --max-attempts, --backoff or --retention")
	}
	return fields, nil
}

func typePath(name string) string { return "/api/types/" + url.PathEscape(name) }

// parseRate checks the number and returns it as the user wrote it.
func parseRate(flag, value string) (any, error) {
	if f, err := strconv.ParseFloat(value, 64); err != nil || f < 0 || !json.Valid([]byte(value)) {
		return nil, term.UsageErrorf("%s is %q: it must be claims per second, as 0.5 or 100, or none", flag, value)
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
	for i, name := range []string{"max claimed", "max per key", "key rate/s", "fair", "rate/s", "delay", "dead letter", "lease", "attempts", "backoff", "retention"} {
		f.Add(name, term.Cell(words[i]))
	}
	f.Add("pending", strconv.FormatInt(t.Counts["pending"], 10))
	f.Add("claimed", strconv.FormatInt(t.Counts["claimed"], 10))
	return term.Columns(a.Stdout, f)
}

type shareSetOptions struct {
	paused                        bool
	maxClaimed, weight, rateLimit string
}

// NewShareCommand returns the command `claimq share`.
func NewShareCommand(a *term.App) *cobra.Command {
	return term.Group(&cobra.Command{
		Use:   "share",
		Short: "Show the shares of a task type, or change one",
		Long: `Show or change shares: the tasks of a type with the same share key, as those of one
customer.`,
		Example: `  claimq share list mail --by-pending
  claimq share set mail acme --max-claimed 2 --weight 300
  claimq share set mail acme --paused
  claimq share delete mail acme`,
	}, newShareListCommand(a), newShareSetCommand(a), newShareDeleteCommand(a))
}

func newShareSetCommand(a *term.App) *cobra.Command {
	var o shareSetOptions
	cmd := &cobra.Command{
		Use:   "set TYPE KEY",
		Short: "Replace the settings of a share",
		Long: `Replace the settings of a share, even before it has tasks. They come before those of
the type; what has no flag is as the type says. A pause and the limits affect new
claims only: present claims continue.`,
		Example: `  claimq share set mail acme --max-claimed 2 --weight 300
  claimq share set mail acme --rate-limit 0.5
  claimq share set mail acme --paused`,
	}
	session.Command(a, cmd, func(args []string) (session.Request, error) {
		fields, err := o.fields(cmd.Flags())
		if err != nil {
			return session.Request{}, err
		}
		body, err := json.Marshal(fields)
		if err != nil {
			return session.Request{}, err
		}
		return session.Put(sharePath(args[0], args[1]), body, setsAgain)
	}, func(_ []string, answer *wire.Shares) error { return showShare(a, answer.Share) })
	f := cmd.Flags()
	f.BoolVar(&o.paused, "paused", false, "stop claims of this share, except by id, until it is set without this")
	f.StringVar(&o.maxClaimed, "max-claimed", "", "how many of its tasks are claimed at a time")
	f.StringVar(&o.weight, "weight", "", "how many turns it gets if the type is fair, 1 to 10000 (default 100)")
	f.StringVar(&o.rateLimit, "rate-limit", "", "claims per second, as 0.5 or 100")
	term.OnlyExplicit(cmd)
	return cmd
}

// fields builds the request body.
func (o *shareSetOptions) fields(flags *pflag.FlagSet) (map[string]any, error) {
	fields := map[string]any{}
	if flags.Changed("paused") {
		fields["paused"] = o.paused
	}
	if err := addSettings(fields, []setting{
		{"max_claimed", o.maxClaimed, func(v string) (any, error) { return parseCount("--max-claimed", v) }},
		{"weight", o.weight, func(v string) (any, error) { return parseCount("--weight", v) }},
		{"rate_limit", o.rateLimit, func(v string) (any, error) { return parseRate("--rate-limit", v) }},
	}); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, term.UsageErrorf("say what to set: --paused, --max-claimed, --weight or --rate-limit; 'claimq share delete' removes the settings")
	}
	return fields, nil
}

func newShareDeleteCommand(a *term.App) *cobra.Command {
	return session.Command(a, &cobra.Command{
		Use:     "delete TYPE KEY",
		Short:   "Remove the settings of a share, but not its tasks",
		Example: "  claimq share delete mail acme",
	}, func(args []string) (session.Request, error) {
		return session.Delete(sharePath(args[0], args[1]), "Repeat the command: deleting twice does no harm.")
	}, func(_ []string, answer *wire.Shares) error { return showShare(a, answer.Share) })
}

func newShareListCommand(a *term.App) *cobra.Command {
	var limit int
	var after string
	var byPending, withSettings bool
	cmd := &cobra.Command{
		Use:   "list TYPE",
		Short: "List the shares of a task type",
		Long: `List the shares of a type that have pending or claimed tasks, or settings: by share
key, or with --by-pending those with most pending tasks, up to 100. A task behind
another of its group is not counted as pending here. With --settings only those that
have settings are listed.`,
		Example: `  claimq share list mail
  claimq share list mail --by-pending --limit 20`,
	}
	session.Look(a, cmd, func(args []string) (string, error) {
		if cmd.Flags().Changed("limit") && (limit < 1 || limit > listPageMax) {
			return "", term.UsageErrorf("--limit is %d: it must be 1 to %d", limit, listPageMax)
		}
		q := url.Values{}
		if limit != 0 {
			q.Set("limit", strconv.Itoa(limit))
		}
		if after != "" {
			q.Set("after", after)
		}
		if byPending {
			q.Set("order", "pending")
		}
		if withSettings {
			q.Set("settings", "true")
		}
		return strings.TrimSuffix(typePath(args[0])+"/shares?"+q.Encode(), "?"), nil
	}, func(answer *wire.Shares) error { return showShares(a, answer) })
	cmd.Flags().IntVar(&limit, "limit", 0, "how many at most (default 1000)")
	cmd.Flags().StringVar(&after, "after", "", "only those behind this share key")
	cmd.Flags().BoolVar(&byPending, "by-pending", false, "those with most pending tasks first")
	cmd.Flags().BoolVar(&withSettings, "settings", false, "only those with settings")
	cmd.MarkFlagsMutuallyExclusive("after", "by-pending")
	return cmd
}

func sharePath(taskType, key string) string {
	return typePath(taskType) + "/shares/" + url.PathEscape(key)
}

// showShares prints one row per share.
func showShares(a *term.App, answer *wire.Shares) error {
	if len(answer.Shares) == 0 {
		return a.Sayf("no shares")
	}
	rows := [][]string{{"SHARE KEY", "PENDING", "CLAIMED", "OLDEST", "STATE", "MAX CLAIMED", "WEIGHT", "RATE/S"}}
	for i := range answer.Shares {
		s := &answer.Shares[i]
		oldest := "-"
		if s.Pending > 0 {
			oldest = term.ShowMS(s.OldestWaitMS)
		}
		most, rate := shareLimits(s)
		rows = append(rows, []string{
			term.Cell(s.ShareKey), strconv.FormatInt(s.Pending, 10), strconv.FormatInt(s.Claimed, 10), oldest, term.Cell(string(s.State)),
			term.Cell(most), strconv.Itoa(int(s.Weight)), term.Cell(rate),
		})
	}
	if err := a.Table(rows, "RATE/S", "WEIGHT", "MAX CLAIMED"); err != nil || answer.Next == "" {
		return err
	}
	return a.Notef("There are more shares: ask for those behind %s by --after.", term.Printable(answer.Next))
}

// shareLimits puts the limits of a share into words, "" for each that is not set.
func shareLimits(s *wire.Share) (most, rate string) {
	if s.MaxClaimed != nil {
		most = strconv.Itoa(int(*s.MaxClaimed))
	}
	if s.RateLimit != nil {
		rate = strconv.FormatFloat(*s.RateLimit, 'f', -1, 64)
	}
	return most, rate
}

// showShare prints a share, one field per line.
func showShare(a *term.App, s *wire.Share) error {
	if s == nil {
		return nil
	}
	most, rate := shareLimits(s)
	var f term.Fields
	f.Add("share key", term.Printable(s.ShareKey))
	f.Add("state", term.Printable(string(s.State)))
	f.Add("max claimed", term.Cell(most))
	f.Add("weight", strconv.Itoa(int(s.Weight)))
	f.Add("rate/s", term.Cell(rate))
	f.Add("pending", strconv.FormatInt(s.Pending, 10))
	f.Add("claimed", strconv.FormatInt(s.Claimed, 10))
	return term.Columns(a.Stdout, f)
}
