package fsm

import (
	"cmp"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the outcomes in testdata/*.txt")

// TestScripts plays the scripts in testdata. A script is a story in blocks:
//
//	# comments
//	commands, one a line
//	----
//	what became of them, and every task that they changed
//
// Each command is a log entry of its own; a line that begins with "and" adds to
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
	stamp Stamp
	index uint64
	known map[uint64]string // each task as last shown
	out   strings.Builder
}

func newScript(t *testing.T) *script {
	// Calendar times are shown from here on.
	return &script{t: t, m: New(), known: map[uint64]string{}, stamp: Stamp{T: scriptEpoch}}
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
	var entry []Command
	flush := func() {
		if len(entry) > 0 {
			s.apply(entry)
			entry = nil
		}
	}
	for _, line := range lines {
		line, joined := strings.CutPrefix(line, "and ")
		if !joined {
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

// apply applies an entry, and shows results and changed tasks.
func (s *script) apply(commands []Command) {
	s.index++
	for i, c := range commands {
		if e, ok := c.(Expire); ok && e.Items == nil {
			commands[i] = Expire{Items: s.due()}
		}
	}
	a := mustApply(s.t, s.m, s.index, AppendEntry(nil, s.stamp, commands...))
	mustCheck(s.t, s.m)
	for _, r := range a.Results {
		s.printf("%s", outcomeOf(r))
	}
	if a.Checkpoint {
		s.printf("checkpoint at %d", a.Index)
	}
	now := map[uint64]string{}
	for id, t := range s.m.tasks.all() {
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
func (s *script) due() []Lease {
	due := []Lease{}
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
	}
	if r.Repeated {
		add("repeated")
	}
	for _, b := range r.Submitted {
		switch {
		case b.Created:
			add("created %d", b.Task.ID)
		case b.SameRequest:
			add("exists %d", b.Task.ID)
		default:
			add("exists %d otherwise", b.Task.ID)
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
	if r.Code == "" && r.Claims == nil && r.Submitted == nil && r.Task != nil {
		add("task %d", r.Task.ID)
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " ")
}

// describe shows a task in a line; times of the calendar are since the start.
func describe(t *Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s", t.ID, t.Type, t.Status)
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
	if t.CompletedAt > 0 {
		fmt.Fprintf(&b, ", ended at %d", t.CompletedAt-scriptEpoch)
	}
	if t.Result != nil {
		fmt.Fprintf(&b, ", result %s", t.Result)
	}
	if t.Error != "" {
		fmt.Fprintf(&b, ", error %q", t.Error)
	}
	return b.String()
}

// read shows something of the state, or moves the clocks.
func (s *script) read(a *args) {
	switch verb := a.word(); verb {
	case "wait": // both clocks go on
		n := a.int()
		s.stamp.U += n
		s.stamp.T += n
	case "clocks": // of the next entries
		s.stamp = Stamp{U: a.option("u", s.stamp.U), T: a.option("t", s.stamp.T-scriptEpoch) + scriptEpoch}
	case "get":
		s.show(s.m.Get(a.id()))
	case "key":
		s.show(s.m.ByKey(a.word()))
	case "log":
		for _, x := range s.m.Get(a.id()).Log {
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
		s.printf("%v", s.m.Claimable(a.claimNext(), s.m.Stamp()))
	case "requests":
		for seq, r := range s.m.requests.all() {
			s.printf("%d %s of %s, claims %v, live %d, until %d", seq, r.ID, r.WorkerID, r.Claims, r.Live, r.ForgetU)
		}
	default:
		s.t.Fatalf("unknown word %q", verb)
	}
}

func (s *script) show(t *Task) {
	if t == nil {
		s.printf("nothing")
		return
	}
	s.printf("%s", describe(t))
	s.printf("  params %s, payload %q, priority %d, key %q, lease %d ms", t.Params, t.Payload, t.Priority, t.Key, t.LeaseMS)
	s.printf("  created at %d, updated at %d, claimed at %d", t.CreatedAt-scriptEpoch, t.UpdatedAt-scriptEpoch, max(t.ClaimedAt-scriptEpoch, 0))
}

func (s *script) list(a *args) {
	status, _ := ParseStatus(a.text("status", ""))
	page := s.m.List(ListQuery{
		Status: status, Type: a.text("type", ""), WorkerID: a.text("worker", ""), Key: a.text("key", ""),
		Descending: a.text("order", "asc") == "desc", Limit: int(a.option("limit", 100)), From: uint64(a.option("from", 0)),
	})
	for _, t := range page.Tasks {
		s.printf("%d %s %s", t.ID, t.Type, t.Status)
	}
	s.printf("next %d", page.Next)
}

func (s *script) stats() {
	st := s.m.Stats(s.stamp)
	line := func(name string, counts [StatusCancelled + 1]int64) {
		for status, n := range counts {
			if n > 0 {
				name += fmt.Sprintf(" %v %d", Status(status), n)
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
func (a *args) command() Command {
	verb := a.words[0]
	build, ok := map[string]func() Command{
		"submit":     func() Command { return Submit{Tasks: a.newTasks()} },
		"claim":      func() Command { return a.claimNext() },
		"claim-task": func() Command { return a.claimTask() },
		"complete": func() Command {
			return Complete{Hold: a.hold(), Result: a.optional("result")}
		},
		"fail":        func() Command { return Fail{Hold: a.hold(), Error: a.text("error", "")} },
		"extend":      func() Command { return Extend{Hold: a.hold(), LeaseMS: a.option("lease", 0)} },
		"release":     func() Command { return Release{Hold: a.hold()} },
		"delete":      func() Command { return Delete{ID: a.id()} },
		"expire":      func() Command { return Expire{Items: a.leases()} },
		"tick":        func() Command { return Tick{} },
		"checkpoint":  func() Command { return Checkpoint{} },
		"level":       func() Command { return SetLevel{Level: uint32(a.int())} },
		"remove-node": func() Command { return RemoveNode{UUID: a.word()} },
		"retry": func() Command {
			return Retry{ID: a.id(), Token: uint64(a.option("token", 0)), AddAttempts: int32(a.option("add", 0))}
		},
		"set-node": func() Command {
			return SetNode{Node: NodeRecord{UUID: a.word(), NodeID: a.text("name", ""), PeerAddr: a.text("peer", "")}}
		},
	}[verb]
	if !ok {
		return nil
	}
	a.word()
	return build()
}

// newTasks are what is to be submitted: one task of each type, else alike.
func (a *args) newTasks() []NewTask {
	n := NewTask{
		Params:      a.optional("params"),
		Priority:    int32(a.option("priority", 0)),
		MaxAttempts: int32(a.option("attempts", DefaultAttempts)),
		Key:         a.text("key", ""),
		LeaseMS:     a.option("lease", 0),
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
	var tasks []NewTask
	for _, name := range a.rest() {
		n.Type = name
		tasks = append(tasks, n)
	}
	return tasks
}

func (a *args) claimNext() ClaimNext {
	c := ClaimNext{WorkerID: a.word(), Types: slices.Sorted(slices.Values(a.rest()))}
	if a.text("by", "priority") == "created" {
		c.SortBy = SortCreatedAt
	}
	c.Ascending = a.text("order", "desc") == "asc"
	c.Limit = int32(a.option("limit", 1))
	c.LeaseMS = a.option("lease", 0)
	c.RequestID = a.text("request", "")
	return c
}

func (a *args) claimTask() ClaimTask {
	return ClaimTask{WorkerID: a.word(), ID: a.id(), LeaseMS: a.option("lease", 0), RequestID: a.text("request", "")}
}

func (a *args) hold() Hold {
	return Hold{WorkerID: a.word(), ID: a.id(), Token: uint64(a.option("token", 0))}
}

// leases are TASK/TOKEN/SEQ each; without any, those that have run out.
func (a *args) leases() []Lease {
	var leases []Lease
	for _, w := range a.rest() {
		var l Lease
		if _, err := fmt.Sscanf(w, "%d/%d/%d", &l.TaskID, &l.Token, &l.Seq); err != nil {
			a.t.Fatalf("%q: %v", a.line, err)
		}
		leases = append(leases, l)
	}
	return leases
}
