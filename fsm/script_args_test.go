package fsm

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// args are the words of a line, and its options as name=value.
type args struct {
	t       *testing.T
	line    string
	words   []string
	options map[string]string
}

func parseArgs(t *testing.T, line string) *args {
	a := &args{t: t, line: line, options: map[string]string{}}
	for _, f := range strings.Fields(line) {
		if name, value, ok := strings.Cut(f, "="); ok {
			a.options[name] = value
		} else {
			a.words = append(a.words, f)
		}
	}
	return a
}

// done fails the test if the line says more than was understood.
func (a *args) done() {
	if len(a.words) > 0 || len(a.options) > 0 {
		a.t.Fatalf("%q: what is %v %v?", a.line, a.words, a.options)
	}
}

func (a *args) word() string {
	if len(a.words) == 0 {
		a.t.Fatalf("%q: a word is missing", a.line)
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

func (a *args) rest() []string {
	rest := a.words
	a.words = nil
	return rest
}

func (a *args) parse(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		a.t.Fatalf("%q: %v", a.line, err)
	}
	return n
}

func (a *args) int() int64 { return a.parse(a.word()) }

func (a *args) id() uint64 { return uint64(a.int()) }

func (a *args) text(name, otherwise string) string {
	v, ok := a.options[name]
	delete(a.options, name)
	if !ok {
		return otherwise
	}
	return v
}

func (a *args) option(name string, otherwise int64) int64 {
	if v := a.text(name, ""); v != "" {
		return a.parse(v)
	}
	return otherwise
}

func (a *args) optional(name string) []byte {
	if v := a.text(name, ""); v != "" {
		return []byte(v)
	}
	return nil
}

// command returns the command that the line stands for, nil if it is a read.
func (a *args) command() command.Command {
	verb := a.words[0]
	build, ok := map[string]func() command.Command{
		"submit":     func() command.Command { return command.Submit{Tasks: a.newTasks()} },
		"claim":      func() command.Command { return a.claimNext() },
		"claim-task": func() command.Command { return a.claimTask() },
		"complete": func() command.Command {
			return command.Complete{Hold: a.hold(), Result: a.optional("result"), Late: a.text("late", "") != ""}
		},
		"fail": func() command.Command { return a.fail() },
		"extend": func() command.Command {
			return command.Extend{Hold: a.hold(), LeaseMS: a.option("lease", 0), Progress: a.optional("progress"), Exact: a.text("exact", "") != ""}
		},
		"release": func() command.Command {
			return command.Release{Hold: a.hold(), DelayMS: a.option("delay", 0), Answer: uint32(a.option("answer", 0))}
		},
		"delete": func() command.Command { return command.Delete{ID: a.id()} },
		"cancel": func() command.Command { return command.Cancel{ID: a.id()} },
		"patch":  func() command.Command { return a.patch() },
		"add":    func() command.Command { return command.AddSteps{Hold: a.hold()} },
		"signal": func() command.Command {
			return command.Signal{ID: a.id(), Body: a.optional("body"), By: a.text("by", "")}
		},
		"type":  func() command.Command { return a.setType() },
		"share": func() command.Command { return a.setShare() },
		"defaults": func() command.Command {
			c := a.settings()
			return command.SetDefaults{Set: c.Set, Defaults: record.DefaultsOf(&c.Settings), By: a.text("by", "")}
		},
		"trail":  func() command.Command { return command.SetTrail{Bytes: a.int(), AgeMS: a.int()} },
		"forget": func() command.Command { return command.Forget{Bytes: a.int()} },
		"evict":  func() command.Command { return command.Evict{Bytes: a.int()} },
		"batch": func() command.Command {
			return command.Batch{Atomic: a.text("atomic", "") != "", RequestID: a.text("request", "")}
		},
		"schedule":   func() command.Command { return a.setSchedule() },
		"unschedule": func() command.Command { return command.DeleteSchedule{Name: a.word(), By: a.text("by", "")} },
		"run":        func() command.Command { return command.RunSchedules{Items: a.slots()} },
		"act":        func() command.Command { return a.act() },
		"move": func() command.Command {
			return command.MoveTasks{Type: a.word(), Cancel: uint64(a.option("cancel", 0)), To: a.text("to", ""), Rate: int32(a.option("rate", 0)), By: a.text("by", "")}
		},
		"expire":      func() command.Command { return command.Expire{Items: a.leases()} },
		"tick":        func() command.Command { return command.Tick{} },
		"checkpoint":  func() command.Command { return command.Checkpoint{} },
		"level":       func() command.Command { return command.SetLevel{Level: uint32(a.int()), By: a.text("by", "")} },
		"remove-node": func() command.Command { return command.RemoveNode{UUID: a.word()} },
		"retry": func() command.Command {
			return command.Retry{ID: a.id(), Token: uint64(a.option("token", 0)), AddAttempts: int32(a.option("add", 0))}
		},
		"claim-finalization":   func() command.Command { return a.claimFinalization() },
		"extend-finalization":  func() command.Command { return command.ExtendFinalization(a.claimFinalization()) },
		"release-finalization": func() command.Command { return command.ReleaseFinalization{ProcessorID: a.word(), ID: a.id()} },
		"finalize":             func() command.Command { return a.finalize() },
		"tell": func() command.Command {
			kind, _ := event.ParseKind(a.word())
			return command.Tell{Kind: kind, What: a.text("what", ""), By: a.text("by", "")}
		},
		"set-node": func() command.Command {
			return command.SetNode{Node: record.NodeRecord{UUID: a.word(), NodeID: a.text("name", ""), PeerAddr: a.text("peer", ""), Nonvoter: a.text("nonvoter", "") != ""}}
		},
	}[verb]
	if !ok {
		return nil
	}
	a.word()
	return build()
}

// newTasks returns tasks to submit: one of each type, otherwise alike.
func (a *args) newTasks() []record.NewTask {
	unique := a.text("unique", "exists")
	n := record.NewTask{
		Params:      a.optional("params"),
		Priority:    int32(a.option("priority", 0)),
		MaxAttempts: int32(a.option("attempts", record.DefaultAttempts)),
		Key:         a.text("key", ""),
		LeaseMS:     a.option("lease", 0),

		RunAt:        a.time("run_at"),
		DelayMS:      a.option("delay", 0),
		AtOnce:       a.text("at_once", "") != "",
		ExpiresAt:    a.time("expires_at"),
		ExpiresAgain: a.text("expires_again", "") != "",
		Backoff:      a.backoff(),
		RetentionMS:  a.retention(),
		Labels:       a.labels(),
		Group:        a.text("group", ""),
		UniqueActive: unique == "active" || unique == "replace",
		Replace:      unique == "replace",
		UniqueMS:     a.option("window", 0),
		SignalMS:     a.option("signal", 0),
		KeyOfType:    a.text("taken", "all") == "type",
		Traceparent:  a.text("traceparent", ""),
		ShareKey:     a.text("share", ""),
		Attributes:   a.optional("attributes"),
		Parent:       a.parent(),
	}
	if p := a.text("payload", ""); p != "" {
		payload, err := hex.DecodeString(p)
		if err != nil {
			a.t.Fatalf("%q: %v", a.line, err)
		}
		n.Payload = payload
	} else if n.Params == nil {
		n.Params = []byte("{}")
	}
	var tasks []record.NewTask
	for _, name := range a.rest() {
		n.Type = name
		tasks = append(tasks, n)
	}
	return tasks
}

func (a *args) claimNext() command.ClaimNext {
	c := command.ClaimNext{WorkerID: a.word(), Types: slices.Sorted(slices.Values(a.rest()))}
	c.SortBy = map[string]command.SortBy{"priority": command.SortPriority, "created": command.SortCreatedAt, "random": command.SortRandom}[a.text("by", "priority")]
	c.MoreAttempts = int32(a.option("more", 0))
	c.Ascending = a.text("order", "desc") == "asc"
	c.Limit = int32(a.option("limit", 1))
	c.LeaseMS = a.option("lease", 0)
	c.RequestID = a.text("request", "")
	c.RequestPlace = uint32(a.option("place", 0))
	c.Runs = a.text("runs", "") != ""
	return c
}

func (a *args) claimTask() command.ClaimTask {
	return command.ClaimTask{WorkerID: a.word(), ID: a.id(), LeaseMS: a.option("lease", 0), RequestID: a.text("request", "")}
}

func (a *args) hold() command.Hold {
	return command.Hold{WorkerID: a.word(), ID: a.id(), Token: uint64(a.option("token", 0))}
}

func (a *args) fail() command.Fail {
	f := command.Fail{Hold: a.hold(), Error: a.text("error", ""), Permanent: a.text("permanent", "") != ""}
	_, f.RetryIn = a.options["retry_in"]
	f.RetryInMS = a.option("retry_in", 0)
	return f
}

func (a *args) patch() command.Patch {
	p := command.Patch{ID: a.id()}
	_, p.SetPriority = a.options["priority"]
	_, p.SetRunAt = a.options["run_at"]
	_, p.SetLabels = a.options["labels"]
	_, p.SetShareKey = a.options["share"]
	p.ShareKey = a.text("share", "")
	p.Priority, p.RunAt, p.Labels = int32(a.option("priority", 0)), a.time("run_at"), a.labels()
	return p
}

// setType sets what the line names.
func (a *args) setType() command.SetType {
	c := command.SetType{Type: a.word(), By: a.text("by", "")}
	settings := a.settings()
	c.Set, c.Settings = settings.Set, settings.Settings
	_, c.IfQueue = a.options["if_queue"]
	c.Queue = a.text("if_queue", "")
	return c
}

// setShare replaces the settings of the share by those that the line names.
func (a *args) setShare() command.SetShare {
	return command.SetShare{Type: a.word(), ShareKey: a.word(), By: a.text("by", ""), Settings: record.ShareSettings{
		Paused: a.text("paused", "") != "", MaxClaimed: int32(a.option("max_claimed", 0)), Weight: int32(a.option("weight", 0)),
		RateLimit: a.millionths(a.text("rate", "0")),
	}}
}

// settings are those that the line names; "none" clears one.
func (a *args) settings() (c command.SetType) {
	for name, field := range map[string]record.TypeFields{
		"paused": record.TypePaused, "max_claimed": record.TypeMaxClaimed, "rate": record.TypeRateLimit, "lease": record.TypeLease,
		"attempts": record.TypeMaxAttempts, "backoff": record.TypeBackoff, "retention": record.TypeRetention,
		"queue": record.TypeQueue, "delay": record.TypeDelay, "dead_letter": record.TypeDeadLetter, "max_per_key": record.TypeMaxClaimedPerKey, "rate_per_key": record.TypeRateLimitPerKey, "fair": record.TypeFair,
	} {
		if _, ok := a.options[name]; ok {
			c.Set |= field
		}
		if a.options[name] == "none" {
			delete(a.options, name)
		}
	}
	_, c.Settings.LimitSet = a.options["attempts"]
	c.Settings.Paused = a.text("paused", "") != ""
	c.Settings.MaxClaimed = int32(a.option("max_claimed", 0))
	c.Settings.Fair = a.text("fair", "") != ""
	c.Settings.MaxClaimedPerKey = int32(a.option("max_per_key", 0))
	c.Settings.RateLimit = a.millionths(a.text("rate", "0"))
	c.Settings.RateLimitPerKey = a.millionths(a.text("rate_per_key", "0"))
	c.Settings.LeaseMS = a.option("lease", 0)
	c.Settings.MaxAttempts = int32(a.option("attempts", 0))
	c.Settings.Backoff = a.backoff()
	c.Settings.RetentionMS = a.retention()
	c.Settings.Queue = a.text("queue", "")
	c.Settings.DelayMS = a.option("delay", 0)
	c.Settings.DeadLetter = a.text("dead_letter", "")
	c.Settings.DeadLetterAfter = int32(a.option("dead_after", 0))
	return c
}

// time is since the start of the script; "now" is at once.
func (a *args) time(name string) int64 {
	if v := a.text(name, "now"); v != "now" {
		return a.parse(v) + scriptEpoch
	}
	return 0
}

// backoff is INITIAL/MAX/FACTOR/JITTER.
func (a *args) backoff() *record.Backoff {
	v := a.text("backoff", "")
	if v == "" {
		return nil
	}
	f := strings.Split(v, "/")
	if len(f) != 4 {
		a.t.Fatalf("%q: backoff is INITIAL/MAX/FACTOR/JITTER", a.line)
	}
	return &record.Backoff{InitialMS: a.parse(f[0]), MaxMS: a.parse(f[1]), Factor: a.millionths(f[2]), Jitter: a.millionths(f[3])}
}

// millionths is a decimal number with at most six places, in millionths.
func (a *args) millionths(v string) int64 {
	whole, places, _ := strings.Cut(v, ".")
	return a.parse(whole)*record.Million + a.parse((places + "000000")[:6])
}

// retention is as in the API: 0 removes the task at its end, -1 keeps it until it is deleted.
func (a *args) retention() int64 {
	switch v := a.text("retention", ""); v {
	case "":
		return 0
	case "0":
		return record.KeepNone
	case "-1":
		return record.KeepForever
	default:
		return a.parse(v)
	}
}

// labels are NAME:VALUE, with commas between.
func (a *args) labels() []record.Label {
	var labels []record.Label
	for _, f := range strings.FieldsFunc(a.text("labels", ""), func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(f, ":")
		labels = append(labels, record.Label{Name: name, Value: value})
	}
	return labels
}

// leases are TASK/TOKEN/SEQ each; without any, those that have run out.
func (a *args) leases() []command.Lease {
	var leases []command.Lease
	for _, w := range a.rest() {
		var l command.Lease
		if _, err := fmt.Sscanf(w, "%d/%d/%d", &l.TaskID, &l.Token, &l.Seq); err != nil {
			a.t.Fatalf("%q: %v", a.line, err)
		}
		leases = append(leases, l)
	}
	return leases
}
