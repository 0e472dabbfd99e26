package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/timespan"
)

// taskFlags holds the flags that describe a task.
type taskFlags struct {
	sent        newTask // has what flags give as it is sent
	delay       time.Duration
	runAt       string
	expiresAt   string
	labels      []string
	backoff     string
	retention   string
	maxAttempts int32
	lease       time.Duration
	attributes  string
	uniqueFor   time.Duration
	signalFor   time.Duration
}

// addTaskFlags adds the flags to f and returns their names.
func (t *taskFlags) addTaskFlags(f *pflag.FlagSet) (names []string) {
	own := pflag.NewFlagSet("task", pflag.ContinueOnError)
	own.StringVar(&t.sent.IdempotencyKey, "key", "", "idempotency key; none: a random one, so that the command can repeat itself")
	own.Int32Var(&t.sent.Priority, "priority", 0, "higher is claimed first")
	term.DurationVar(own, &t.delay, "delay", 0, "time before it can be claimed, in place of its type's")
	own.StringVar(&t.runAt, "run-at", "", "time from which it can be claimed, as 2026-01-02T15:04:05Z or with an offset")
	own.StringVar(&t.expiresAt, "expires-at", "", "it fails if it has not been claimed by then")
	own.BoolVar(&t.sent.ExpiresAgain, "expires-again", false, "with --expires-at: it fails also if it waits then, or later, after a claim")
	own.StringArrayVar(&t.labels, "label", nil, "label, as name=value; repeatable")
	own.StringVar(&t.sent.Group, "group", "", "tasks of a type with the same group run one at a time, in order")
	own.StringVar(&t.sent.ShareKey, "share-key", "", "the share of its type's tasks that it belongs to, as a tenant; a type can limit each and let them take turns")
	own.StringVar(&t.attributes, "attributes", "", "a JSON object that describes the payload; workers get it unchanged")
	own.StringVar(&t.sent.Unique, "unique", "", "for how long the key is taken: exists (while the task exists, the default), active (until it ends), replace (active, and a task that waits with the key gets the new params and time) or window (for --unique-for)")
	term.DurationVar(own, &t.signalFor, "wait-for-signal", 0, "the task waits for 'claimq signal', and fails if none comes for so long, up to 365d")
	term.DurationVar(own, &t.uniqueFor, "unique-for", 0, "with --unique window: the key is taken this long after the submit, up to 24h")
	own.StringVar(&t.backoff, "backoff", "", "wait after a failed attempt: "+backoffForm)
	own.StringVar(&t.retention, "retention", "", "keep it this long after its end: 12h, 7d, 0 (gone at once) or forever")
	own.Int32Var(&t.maxAttempts, "max-attempts", 0, "attempts before it fails for good; 0: no limit; not given: the type's, else the server's, 10 in a new cluster")
	term.DurationVar(own, &t.lease, "lease", 0, "how long its claims last; 0: the type's, else the server's default")
	own.VisitAll(func(flag *pflag.Flag) {
		names = append(names, flag.Name)
		f.AddFlag(flag)
	})
	return names
}

// task builds the task from the flags, without its params.
func (t *taskFlags) task(flags *pflag.FlagSet) (*newTask, error) {
	n := t.sent
	if flags.Changed("delay") && t.runAt != "" {
		return nil, term.UsageErrorf("--delay and --run-at are both given: give one of them")
	}
	if n.ExpiresAgain && t.expiresAt == "" {
		return nil, term.UsageErrorf("--expires-again is given without --expires-at: give the time, too")
	}
	var err error
	if t.attributes != "" {
		if !json.Valid([]byte(t.attributes)) || strings.TrimSpace(t.attributes)[0] != '{' {
			return nil, term.UsageErrorf("--attributes is %q: it must be a JSON object", t.attributes)
		}
		n.Attributes = json.RawMessage(t.attributes)
	}
	if n.SignalMS, err = wholeMS("--wait-for-signal", t.signalFor); err != nil {
		return nil, err
	}
	if n.UniqueMS, err = wholeMS("--unique-for", t.uniqueFor); err != nil {
		return nil, err
	}
	if flags.Changed("delay") {
		ms, err := wholeMS("--delay", t.delay)
		if err != nil {
			return nil, err
		}
		n.DelayMS = &ms
	}
	if n.LeaseMS, err = wholeMS("--lease", t.lease); err != nil {
		return nil, err
	}
	if n.RunAt, err = parseTime("--run-at", t.runAt); err != nil {
		return nil, err
	}
	if n.ExpiresAt, err = parseTime("--expires-at", t.expiresAt); err != nil {
		return nil, err
	}
	if n.Labels, err = parseLabels(t.labels); err != nil {
		return nil, err
	}
	if t.backoff != "" {
		if n.Backoff, err = parseBackoff(t.backoff); err != nil {
			return nil, err
		}
	}
	if t.retention != "" {
		if n.RetentionMS, err = parseRetention(t.retention); err != nil {
			return nil, err
		}
	}
	if flags.Changed("max-attempts") {
		n.MaxAttempts = &t.maxAttempts
	}
	return &n, nil
}

// newTask is a task to submit, with its backoff as the user wrote it.
type newTask struct {
	wire.NewTask
	Backoff json.RawMessage `json:"backoff,omitempty"`
}

// wholeMS returns d in milliseconds. It refuses a length that would be sent as another one.
func wholeMS(flag string, d time.Duration) (int64, error) {
	if d < 0 || d%time.Millisecond != 0 {
		return 0, term.UsageErrorf("%s is %v: it must be whole milliseconds, not negative", flag, d)
	}
	return d.Milliseconds(), nil
}

// parseTime reads the time of a flag. It returns nil for "".
func parseTime(flag, value string) (*time.Time, error) {
	if value == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return nil, term.UsageErrorf("%s is %q: it must be a time as 2026-01-02T15:04:05Z or 2026-01-02T15:04:05+01:00", flag, value)
	}
	at = at.UTC()
	return &at, nil
}

func parseLabels(args []string) (wire.Labels, error) {
	var labels wire.Labels
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case !ok || name == "":
			return nil, term.UsageErrorf("--label is %q: it must be name=value", arg)
		case strings.Contains(name, ":"): // in a query it ends the name
			return nil, term.UsageErrorf("--label is %q: it must be name=value, without : in the name", arg)
		}
		if _, twice := labels[name]; twice {
			return nil, term.UsageErrorf("--label %s is given twice", name)
		}
		if labels == nil {
			labels = wire.Labels{}
		}
		labels[name] = value
	}
	return labels, nil
}

// backoffForm describes what parseBackoff reads.
const backoffForm = "INITIAL[,MAX[,FACTOR[,JITTER]]] as 1s,10m,2,0.2 (not given: 1h, 2, 0.2), or the API's JSON"

// parseBackoff returns a backoff as JSON: the user's own JSON, or the short form converted.
func parseBackoff(value string) (json.RawMessage, error) {
	if strings.HasPrefix(value, "{") {
		if !json.Valid([]byte(value)) {
			return nil, term.UsageErrorf("--backoff is not JSON: %s", value)
		}
		return json.RawMessage(value), nil
	}
	parts := strings.Split(value, ",")
	bad := term.UsageErrorf("--backoff is %q: it must be %s", value, backoffForm)
	if len(parts) > 4 {
		return nil, bad
	}
	names := [...]string{"initial_ms", "max_ms", "factor", "jitter"}
	var b bytes.Buffer
	for i, part := range parts {
		number := part
		if i < 2 {
			d, err := timespan.Parse(part)
			if err != nil || d%time.Millisecond != 0 {
				return nil, bad
			}
			number = strconv.FormatInt(d.Milliseconds(), 10)
		} else if _, err := strconv.ParseFloat(part, 64); err != nil || !json.Valid([]byte(part)) {
			return nil, bad
		}
		fmt.Fprintf(&b, `%c"%s":%s`, "{,,,"[i], names[i], number)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// parseRetention reads a retention: how many milliseconds the server keeps an ended task.
func parseRetention(value string) (*int64, error) {
	ms := int64(-1)
	if value != "forever" {
		d, err := timespan.Parse(value)
		if err != nil || d < 0 || d%time.Millisecond != 0 {
			return nil, term.UsageErrorf("--retention is %q: it must be a time as 12h, 7d or 1d12h, 0 (gone at once) or forever", value)
		}
		ms = d.Milliseconds()
	}
	return &ms, nil
}
