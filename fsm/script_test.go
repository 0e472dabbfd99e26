package fsm

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

var update = flag.Bool("update", false, "rewrite the outcomes in testdata/*.txt")

// TestScripts plays the scripts in testdata. A script is a story in blocks:
//
//	# comments
//	commands, one a line
//	----
//	the outcome, and every task that they changed
//
// Each command is a separate log entry; a line that begins with "and" adds to
// the entry before. testdata/README.md has the words of the language.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newScript(t).play(string(script))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(script) {
				t.Errorf("%s: %s", file, firstDifference(string(script), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d is\n\t%s\nwant\n\t%s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// script plays one file.
type script struct {
	t     *testing.T
	m     *Machine
	stamp record.Stamp
	index uint64
	known map[uint64]string // each task as last shown
	wakes bool              // what became claimable is shown
	out   strings.Builder
	// before, if not nil, is called before an entry is applied.
	before func(commands []command.Command)
}

func newScript(t *testing.T) *script {
	// Calendar times are shown from here on.
	s := &script{t: t, m: newRestful(), known: map[uint64]string{}, stamp: record.Stamp{T: scriptEpoch}}
	s.m.header.Level = record.FeatureLevel
	return s
}

const scriptEpoch = 1_000_000

// play returns the script with the outcomes that it has now.
func (s *script) play(text string) string {
	var block []string
	skipping := false
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case line == "----":
			s.out.WriteString("----\n")
			s.run(block)
			block, skipping = nil, true
		case skipping && line != "":
		case line == "":
			if skipping || len(block) == 0 {
				s.out.WriteString("\n")
			}
			skipping = false
		default:
			s.out.WriteString(line + "\n")
			if !strings.HasPrefix(line, "#") {
				block = append(block, line)
			}
		}
	}
	if len(block) > 0 {
		s.t.Fatalf("no ---- after %q", block)
	}
	return s.out.String()
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// run plays the commands of a block.
func (s *script) run(lines []string) {
	var entry []command.Command
	flush := func() {
		if len(entry) > 0 {
			s.apply(entry)
			entry = nil
		}
	}
	for _, line := range lines {
		first, rest, _ := strings.Cut(line, " ")
		switch first {
		case "and":
			line = rest
		case "op", "then":
			s.add(entry, first, rest)
			continue
		case "step":
			s.addStep(entry, rest)
			continue
		default:
			flush()
		}
		a := parseArgs(s.t, line)
		if c := a.command(); c != nil {
			entry = append(entry, c)
		} else {
			flush()
			s.read(a)
		}
		a.done()
	}
	flush()
}

// add adds an op to the Batch, or a follow-up or claim to the Complete, that
// is last.
func (s *script) add(entry []command.Command, word, line string) {
	a := parseArgs(s.t, line)
	c := a.command()
	a.done()
	last := &entry[len(entry)-1]
	batch, isBatch := (*last).(command.Batch)
	if word == "op" {
		batch.Ops = append(batch.Ops, c)
		*last = batch
		return
	}
	if isBatch {
		last = &batch.Ops[len(batch.Ops)-1]
	}
	complete := (*last).(command.Complete)
	switch c := c.(type) {
	case command.Submit:
		complete.Submit = append(complete.Submit, c.Tasks...)
	case command.ClaimNext:
		complete.Claim = &c
	default:
		s.t.Fatalf("%q cannot follow a complete", line)
	}
	*last = complete
}

// apply applies an entry, and shows results and changed tasks.
func (s *script) apply(commands []command.Command) {
	s.index++
	if s.before != nil {
		s.before(commands)
	}
	for i, c := range commands {
		if e, ok := c.(command.Expire); ok && e.Items == nil {
			commands[i] = command.Expire{Items: s.due()}
		}
		if r, ok := c.(command.RunSchedules); ok && r.Items == nil {
			commands[i] = command.RunSchedules{Items: s.dueSlots()}
		}
	}
	a := mustApply(s.t, s.m, s.index, command.AppendEntry(nil, s.stamp, commands...))
	mustCheck(s.t, s.m)
	for i, r := range a.Results {
		if b, ok := commands[i].(command.Batch); ok && b.Atomic && r.Results == nil {
			s.printf("nothing was done, op %d was refused: %s", r.FailedOp, outcomeOf(r))
			continue
		}
		s.printf("%s", outcomeOf(r))
		for _, op := range r.Results {
			s.printf("- %s", outcomeOf(op))
		}
	}
	if a.Checkpoint {
		s.printf("checkpoint at %d", a.Index)
	}
	for _, r := range a.Ready {
		if s.wakes {
			s.printf("ready: %d of %s", r.Count, r.Type)
		}
	}
	now := map[uint64]string{}
	for id, t := range s.m.tasks.All() {
		now[id] = describe(t)
		if now[id] != s.known[id] {
			s.printf("  %s", now[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.known)) {
		if _, ok := now[id]; !ok {
			s.printf("  %d gone", id)
		}
	}
	s.known = now
}

// due returns the leases that the leader would find run out.
func (s *script) due() []command.Lease {
	due := []command.Lease{}
	for l := range s.m.Leases() {
		if l.EndU <= s.stamp.U {
			due = append(due, l)
		}
	}
	return due
}

// outcomeOf says what a result says, in a line.
func outcomeOf(r Result) string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if r.Code != "" {
		add("%s", r.Code)
		if r.Task != nil {
			add("(%d is %v)", r.Task.ID, r.Task.Status)
		}
		if r.Reason != "" {
			add("%s", r.Reason)
		}
	}
	if r.Repeated {
		add("repeated")
	}
	if r.Gone {
		add("gone")
	}
	if r.Code == "" && r.Task != nil && (len(r.Claims) == 0 || r.Claims[0].Task.ID != r.Task.ID) {
		add("task %d", r.Task.ID)
	}
	for _, b := range r.Submitted {
		word := "exists"
		switch {
		case b.Gone:
			word = "gone"
		case b.Replaced:
			word = "replaced"
		}
		switch {
		case b.Refused && b.Step < 0:
			add("refused")
		case b.Refused:
			add("refused for step %d", b.Step)
		case b.Task.ID == 0: // next to one that is refused
			add("left")
		case b.Created:
			add("created %d", b.Task.ID)
		case b.SameRequest:
			add("%s %d", word, b.Task.ID)
		default:
			add("%s %d otherwise", word, b.Task.ID)
		}
	}
	for _, c := range r.Claims {
		live := "live"
		if !c.Live {
			live = cmp.Or("ended, "+c.Task.Status.String(), "ended")
		}
		add("claim %d token %d %s", c.Task.ID, c.Token, live)
	}
	if r.Expired > 0 {
		add("expired %d", r.Expired)
	}
	if r.Schedule != nil {
		add("%s", map[bool]string{true: "new", false: "replaced"}[r.Created])
		add("%s", describeSchedule(r.Schedule))
	}
	if r.Acted > 0 {
		add("acted on %d", r.Acted)
	}
	if r.Forgotten > 0 {
		add("forgot %d", r.Forgotten)
	}
	if r.Evicted > 0 {
		add("evicted %d", r.Evicted)
	}
	if r.Type != nil {
		add("%s", describeType(r.Type))
	}
	if d := r.Defaults; d != nil {
		add("attempts %d, lease %d ms, backoff %+v, retention %d, failed %d", d.MaxAttempts, d.LeaseMS, d.Backoff, d.RetentionMS, d.FailedRetentionMS)
	}
	if r.Results != nil {
		add("batch")
	}
	if r.Parent != nil {
		add("%s", describeAnswer(r))
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " ")
}

// describe shows a task in a line; times of the calendar are since the start.
func describe(t *record.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s%s %s", t.ID, t.Type, placeOf(t), t.Status)
	if t.WorkerID != "" {
		fmt.Fprintf(&b, " by %s token %d", t.WorkerID, t.Token)
	}
	if t.MaxAttempts == 0 {
		fmt.Fprintf(&b, ", attempts %d", t.Attempts)
	} else {
		fmt.Fprintf(&b, ", attempts %d of %d", t.Attempts, t.MaxAttempts)
	}
	if t.LeaseSeq > 0 {
		fmt.Fprintf(&b, ", lease %d of %d ms to %d", t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU)
	}
	if t.CancelRequested {
		b.WriteString(", cancel requested")
	}
	if t.Status == record.StatusScheduled {
		fmt.Fprintf(&b, ", run at %d", t.RunAt-scriptEpoch)
	}
	if t.CompletedAt > 0 {
		fmt.Fprintf(&b, ", ended at %d", t.CompletedAt-scriptEpoch)
	}
	if t.Result != nil {
		fmt.Fprintf(&b, ", result %s", t.Result)
	}
	if t.Error != "" {
		fmt.Fprintf(&b, ", error %q", t.Error)
	}
	if progress := t.Opts().Progress; progress != nil {
		fmt.Fprintf(&b, ", progress %s", progress)
	}
	return b.String()
}

// describeType shows a type's settings: those that it has.
func describeType(v *TypeView) string {
	x := &v.Settings
	words := []string{"type " + v.Type}
	add := func(has bool, format string, args ...any) {
		if has {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(x.Paused, "paused")
	add(x.MaxClaimed != 0, "max_claimed %d", x.MaxClaimed)
	add(x.RateLimit != 0, "rate_limit %d.%06d", x.RateLimit/record.Million, x.RateLimit%record.Million)
	add(x.LeaseMS != 0, "lease %d ms", x.LeaseMS)
	add(x.LimitSet, "max_attempts %d", x.MaxAttempts)
	add(x.Backoff != nil, "backoff %+v", x.Backoff)
	add(x.RetentionMS != 0, "retention %d", x.RetentionMS)
	for status, n := range v.Counts {
		add(n > 0, "%v %d", record.Status(status), n)
	}
	add(v.OldestPendingAgeMS != 0, "oldest pending %d ms", v.OldestPendingAgeMS)
	if m := v.Move; m != nil {
		status := [...]string{record.MoveRunning: "running", record.MoveCompleted: "completed", record.MoveFailed: "failed", record.MoveCancelled: "cancelled"}
		add(true, "move %d %s, %d of %d moved, next at %d, failure %d", m.Number, status[m.Status], m.Moved, m.ToMove, m.NextAt-scriptEpoch, m.Failure)
	}
	return strings.Join(words, ", ")
}

// read shows something of the state, or moves the clocks.
func (s *script) read(a *args) {
	switch verb := a.word(); verb {
	case "wait": // both clocks go on
		n := a.int()
		s.stamp.U += n
		s.stamp.T += n
	case "clocks": // of the next entries
		s.stamp = record.Stamp{U: a.option("u", s.stamp.U), T: a.option("t", s.stamp.T-scriptEpoch) + scriptEpoch}
	case "get":
		s.show(s.m.Get(a.id()))
	case "key":
		key := a.word()
		if taskType := a.text("type", ""); taskType != "" {
			s.show(s.m.ByTypeKey(taskType, key))
		} else {
			s.show(s.m.ByKey(key))
		}
	case "log":
		for _, x := range s.m.Get(a.id()).Claims() {
			s.printf("%s token %d at %d to %d %s %q", x.WorkerID, x.Token, x.ClaimedAt-scriptEpoch, max(x.EndedAt-scriptEpoch, 0), cmp.Or(x.Outcome.String(), "open"), x.Error)
		}
	case "list":
		s.list(a)
	case "stats":
		s.stats()
	case "leases":
		for l := range s.m.Leases() {
			s.printf("task %d token %d lease %d to %d", l.TaskID, l.Token, l.Seq, l.EndU)
		}
	case "nodes":
		for _, n := range s.m.Nodes() {
			s.printf("%s is %s at %s", n.UUID, n.NodeID, n.PeerAddr)
		}
		s.printf("level %d", s.m.Level())
	case "clock":
		s.printf("u %d t %d", s.m.Stamp().U, s.m.Stamp().T-scriptEpoch)
	case "claimable":
		s.printf("%v", s.m.Claimable(a.claimNext(), s.stamp))
	case "due":
		if at, ok := s.m.NextDue(); ok {
			s.printf("due at %d", at-scriptEpoch)
		} else {
			s.printf("nothing is due")
		}
	case "why":
		s.why(a.id())
	case "workers":
		s.workers(a)
	case "rates":
		s.rates(a.word())
	case "schedules":
		for _, v := range s.m.Schedules() {
			s.printf("%s", describeSchedule(v))
		}
		if at, ok := s.m.NextSlot(); ok {
			s.printf("next slot %d", at-scriptEpoch)
		} else {
			s.printf("no slot")
		}
	case "level1": // so that the level can be raised
		s.m.header.Level = 1
	case "events":
		s.events(a)
	case "steps":
		s.steps(a.id())
	case "finalization":
		s.finalization(a.id())
	case "wakes": // from here on
		s.wakes = true
	case "requests":
		for seq, r := range s.m.requests.table.All() {
			var claims []string
			for _, c := range r.Claims {
				claims = append(claims, fmt.Sprintf("%d: %v", c.Place, c.ClaimRef))
			}
			s.printf("%d %s, claims %v, live %d, until %d", seq, r.ID, claims, r.Live, r.ForgetU)
		}
	default:
		s.t.Fatalf("unknown word %q", verb)
	}
}

func (s *script) show(t *record.Task) {
	if t == nil {
		s.printf("nothing")
		return
	}
	s.printf("%s", describe(t))
	s.printf("  params %s, payload %q, priority %d, key %q, lease %d ms", t.Params, t.Payload, t.Priority, t.Key, t.LeaseMS)
	s.printf("  created at %d, updated at %d, claimed at %d", t.CreatedAt-scriptEpoch, t.UpdatedAt-scriptEpoch, max(t.ClaimedAt-scriptEpoch, 0))
	if line := describeRare(t); line != "" {
		s.printf("  %s", line)
	}
}

// describeRare shows those fields that most tasks do not have.
func describeRare(t *record.Task) string {
	var words []string
	add := func(has bool, format string, args ...any) {
		if has {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	o := t.Opts()
	add(t.RunAt > 0 && t.Status != record.StatusScheduled, "waited until %d", t.RunAt-scriptEpoch)
	add(t.Status.Ended() && t.RemoveAt == 0, "never removed")
	add(t.RemoveAt > 0, "removed at %d", t.RemoveAt-scriptEpoch)
	add(o.ExpiresAt != 0, "expires at %d", o.ExpiresAt-scriptEpoch)
	add(o.ExpiresAgain, "also after a claim")
	add(o.RetentionMS != 0, "retention %d", o.RetentionMS)
	add(o.Backoff != nil, "backoff %+v", o.Backoff)
	add(len(o.Labels) > 0, "labels %v", o.Labels)
	add(o.Group != "", "group %s", o.Group)
	add(o.UniqueActive, "unique while active")
	add(o.UniqueMS != 0, "unique for %d ms", o.UniqueMS)
	add(o.KeyOfType, "key of its type")
	add(o.SignalMS != 0, "needs a signal in %d ms", o.SignalMS)
	add(o.SignalUntil != 0, "waits for it until %d", o.SignalUntil-scriptEpoch)
	add(o.Signalled, "signalled %s", o.Signal)
	add(o.Traceparent != "", "trace %s", o.Traceparent)
	add(o.ShareKey != "", "share %s", o.ShareKey)
	add(o.Attributes != nil, "attributes %s", o.Attributes)
	if o.Origin != nil {
		add(true, "copy of %s %d", o.Origin.Type, o.Origin.ID)
	}
	if movedOn(t) {
		how := map[record.Status]string{record.StatusFailed: "dead letter", record.StatusCancelled: "moved to"}
		add(true, "%s %d", how[t.Status], t.Then.Submitted[0].ID)
	}
	add(o.Parent != nil, "%s", describePlan(o.Parent))
	return strings.Join(words, ", ")
}

func (s *script) list(a *args) {
	page := s.m.List(ListQuery{
		Filter:     a.filter(),
		Descending: a.text("order", "asc") == "desc", Limit: int(a.option("limit", 100)), From: uint64(a.option("from", 0)),
	})
	for _, t := range page.Tasks {
		s.printf("%d %s %s", t.ID, t.Type, t.Status)
	}
	s.printf("next %d", page.Next)
}

func (s *script) stats() {
	st := s.m.Stats(s.stamp)
	line := func(name string, counts [record.StatusCancelled + 1]int64) {
		for status, n := range counts {
			if n > 0 {
				name += fmt.Sprintf(" %v %d", record.Status(status), n)
			}
		}
		s.printf("%s", name)
	}
	line(fmt.Sprintf("index %d:", st.Index), st.Counts)
	for _, ts := range st.Types {
		line("  "+ts.Type+":", ts.Counts)
	}
	s.printf("oldest pending %d ms", st.OldestPendingAgeMS)
}
