package check

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// goodRun is a run of two nodes for a minute, in which one fault comes and goes
// and one worker dies.
func goodRun() *history.History {
	h := &history.History{Run: &history.Run{Nodes: 2, Seconds: 60, Drained: true, Neighbours: &history.Neighbours{Readers: 40, Tenants: 2}}}
	for at := range int64(5) {
		h.Run.Neighbours.Rushes = append(h.Run.Neighbours.Rushes, history.Rush{
			At: (6*at + 3) * sec, To: (6*at + 4) * sec, Crowd: slices.Repeat([]int64{60 * ms, 90 * ms, 120 * ms}, 7), Alone: slices.Repeat([]int64{10 * ms}, 7),
		})
	}
	for at := int64(0); at < 60*sec; at += 200 * ms {
		id := uint64(at/(200*ms)) + 1
		name := fmt.Sprint(id)
		seen := history.Task{ID: id, Status: "claimed", Token: id, Attempts: 1, Type: "t", Worker: "w"}
		ended := history.Task{ID: id, Status: "completed", Token: id, Attempts: 1, Type: "t", Worker: "w"}
		op := func(kind history.Kind, after int64, index uint64) *history.Op {
			h.Ops = append(h.Ops, history.Op{
				Process: 1, Kind: kind, Call: at + after, Return: at + after + ms, Outcome: history.OK, TaskID: id, Index: 3*id + index,
			})
			return &h.Ops[len(h.Ops)-1]
		}
		submit := op(history.Submit, 0, 0)
		submit.Key, submit.Created, submit.TaskType = name, true, "t"
		claim := op(history.Claim, 10*ms, 1)
		claim.Token, claim.Worker, claim.RequestID, claim.LeaseMS, claim.Seen = id, "w", name, 1000, &seen
		complete := op(history.Complete, 20*ms, 2)
		complete.Token, complete.Worker, complete.Seen = id, "w", &ended
		final := ended
		if h.Final == nil {
			h.Final = &history.Final{Call: 100 * sec, Return: 101 * sec}
		}
		h.Final.Tasks = append(h.Final.Tasks, final)
		for n, node := range []string{"n1", "n2"} {
			h.Samples = append(h.Samples, history.Sample{
				At: at, Node: node, Up: true, Leads: n == 0, Term: 2, Index: 3 * id, Bytes: 1 << 20, Files: 10, Goroutines: 10,
			})
		}
	}
	h.Events = []history.Event{
		{At: 10 * sec, Kind: history.Injected, Fault: "kill-one", Text: "kill-one"},
		{At: 15 * sec, Kind: history.Healed, Fault: "kill-one", Text: "kill-one healed"},
	}
	h.Dumps = []history.Dump{{Node: "n1", Index: 9, Tasks: 1, Hash: "a"}, {Node: "n2", Index: 9, Tasks: 1, Hash: "a"}}
	return h
}

// waitAlone has the one that reads alone wait in the rushes as long as the others.
func waitAlone(h *history.History, rushes ...int) {
	for _, i := range rushes {
		h.Run.Neighbours.Rushes[i].Alone = slices.Repeat([]int64{82 * ms}, 7)
	}
}

// Rushes say nothing of turns if a fault was under way, or few reads were made, and one alone of
// several says nothing of the run.
func TestJudge_rushes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(h *history.History, all []history.Rush){
		"one of three": func(h *history.History, _ []history.Rush) { waitAlone(h, 0) },
		"in a fault": func(_ *history.History, all []history.Rush) {
			all[1].Alone = slices.Repeat([]int64{82 * ms}, 50)
		},
		"few reads": func(h *history.History, all []history.Rush) {
			waitAlone(h, 0, 3, 4)
			all[0].Alone, all[3].Alone = nil, nil
		},
		"no crowd": func(h *history.History, all []history.Rush) {
			waitAlone(h, 0, 3, 4)
			all[0].Crowd, all[3].Crowd = nil, nil
		},
		"a busy machine": func(h *history.History, _ []history.Rush) {
			waitAlone(h, 0, 3, 4)
			h.Run.Shared = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := goodRun()
			change(h, h.Run.Neighbours.Rushes)
			if v := Judge(h); !v.OK() {
				t.Error(v)
			}
		})
	}
}

func TestJudge_passesAGoodRun(t *testing.T) {
	t.Parallel()
	if v := Judge(goodRun()); !v.OK() {
		t.Error(v)
	}
}

// Each promise that a run breaks is found by its rule.
func TestJudge_findsWhatIsBroken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		rule  Rule
		spoil func(h *history.History)
	}{
		{"a claim lives on long after its lease", RuleLate, func(h *history.History) {
			op := &h.Ops[5] // the second task's complete
			op.Process, op.Call, op.Return = 2, 20*sec, 20*sec+ms
		}},
		{"no leader after a fault", RuleRecovery, func(h *history.History) {
			for i := range h.Samples {
				if s := &h.Samples[i]; s.At > 10*sec && s.At < 21*sec {
					s.Leads = false
				}
			}
		}},
		{"no progress after a fault", RuleRecovery, func(h *history.History) {
			for i := range h.Ops {
				if op := &h.Ops[i]; op.Call > 10*sec && op.Call < 26*sec {
					op.Outcome, op.Code = history.Failed, "no_leader"
				}
			}
		}},
		{"a node that stays behind", RuleRecovery, func(h *history.History) {
			for i := range h.Samples {
				if s := &h.Samples[i]; s.Node == "n2" && s.At > 10*sec {
					s.Index = 5
				}
			}
		}},
		{"states that differ", RuleEqual, func(h *history.History) { h.Dumps[1].Hash = "b" }},
		{"a node tells another trail", RuleTrailEqual, func(h *history.History) { h.Dumps[1].TrailHash = "b" }},
		{"a node tells less", RuleTrailEqual, func(h *history.History) { h.Dumps[1].Events-- }},
		{"indexes that differ", RuleEqual, func(h *history.History) { h.Dumps[1].Index = 8 }},
		{"a node that cannot be read", RuleEqual, func(h *history.History) { h.Dumps = h.Dumps[:1] }},
		{"a process that ended by itself", RuleExit, func(h *history.History) {
			h.Events = append(h.Events, history.Event{At: 30 * sec, Kind: history.Exited, Node: "n1", Code: 2})
		}},
		{"a disk that failed without a fault", RuleExit, func(h *history.History) {
			h.Events = append(h.Events, history.Event{At: 30 * sec, Kind: history.Exited, Node: "n1", Code: 70})
		}},
		{"one that reads alone waits as long as a crowd", RuleTurns, func(h *history.History) { waitAlone(h, 0, 3, 4) }},
		{"too much memory", RuleBounds, func(h *history.History) { h.Samples[3].Bytes = 513 << 20 }},
		{"goroutines that stay", RuleBounds, func(h *history.History) { h.Samples[len(h.Samples)-1].Goroutines = 900 }},
		{"a panic", RuleInternal, func(h *history.History) { h.Samples[3].Panics = 1 }},
		{"an answer that is a bug", RuleInternal, func(h *history.History) {
			h.Ops = append(h.Ops, history.Op{Process: 9, Kind: history.Get, TaskID: 1, Call: sec, Return: 2 * sec, Outcome: history.Unknown, Code: "internal"})
		}},
		{"an answer to a heavy read that is cut", RuleReads, func(h *history.History) {
			h.Events = append(h.Events, history.Event{At: 30 * sec, Kind: history.Garbled})
		}},
		{"no answer to a heavy read before any fault", RuleReads, func(h *history.History) {
			h.Events = append(h.Events, history.Event{At: 9 * sec, Kind: history.Unanswered})
		}},
		{"another leader before any fault", RuleKeeps, func(h *history.History) {
			for i := range h.Samples {
				if s := &h.Samples[i]; s.At > 9*sec {
					s.Leads, s.Term = s.Node == "n2", 3
				}
			}
		}},
		{"a tenant sees what is another's", RuleBeside, func(h *history.History) {
			h.Events = append(h.Events, history.Event{At: 30 * sec, Kind: history.Leaked})
		}},
		{"a run that could not be finished", RuleRecovery, func(h *history.History) { h.Run.Failed = "drain: no" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := goodRun()
			c.spoil(h)
			var rules []Rule
			for _, p := range Judge(h).Parts {
				for _, v := range p.Violations {
					rules = append(rules, v.Rule)
				}
			}
			if !slices.Contains(rules, c.rule) {
				t.Errorf("got violations of %v, want one of %s", rules, c.rule)
			}
		})
	}
}

// On a machine that does other work a cluster has three times as long to recover, and no longer.
func TestJudge_ofASharedMachine(t *testing.T) {
	t.Parallel()
	for leaderAt, ok := range map[int64]bool{21 * sec: true, 31 * sec: false} {
		h := goodRun()
		h.Run.Shared = true
		for i := range h.Samples {
			if s := &h.Samples[i]; s.At > 10*sec && s.At < leaderAt {
				s.Leads = false
			}
		}
		if v := Judge(h); v.OK() != ok {
			t.Errorf("a leader %d s after the fault: %v", (leaderAt-15*sec)/sec, v)
		}
	}
}

// A disk that a fault let fail ends its node, and that is right.
func TestJudge_forgivesAFailedDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault string
		code  int
		ok    bool
	}{
		{"disk-eio-one", storageFailed, true},
		{"disk-eio-one", startFailed, false},
		{"disk-hung-leader", storageFailed, true},
		{"disk-rot-one", startFailed, true},
		{"disk-hung-one+disk-full-one", startFailed, true},
		{"disk-hung-one+disk-full-one", storageFailed, true},
		{"member-wiped", startFailed, true},
		{"member-wiped", storageFailed, false},
		{"kill-one", storageFailed, false},
	} {
		h := goodRun()
		h.Events[0].Fault, h.Events[1].Fault = c.fault, c.fault
		h.Events = append(h.Events, history.Event{At: 12 * sec, Kind: history.Exited, Node: "n1", Code: c.code})
		if v := Judge(h); v.OK() != c.ok {
			t.Errorf("%s, exit code %d: %v", c.fault, c.code, v)
		}
	}
}

// A run that fails is known to fail as soon as the calls have returned that
// show it.
func TestVerdict_First(t *testing.T) {
	t.Parallel()
	h := goodRun()
	h.Ops = append(h.Ops, history.Op{ // a task that was never submitted
		Process: 2, Kind: history.Claim, Call: 30 * sec, Return: 30*sec + ms, Outcome: history.OK, TaskID: 999, Token: 999, RequestID: "x", Worker: "v",
	})
	part, rule, shown, ok := Judge(h).First()
	if !ok || part != "history" || rule != RuleUnsubmitted {
		t.Errorf("got %v, %s, %s", ok, part, rule)
	}
	if shown < 30*time.Second || shown > 31*time.Second {
		t.Errorf("got %v, want 30 s", shown)
	}
}

// How late an ended lease may be seen alive over a change of leader goes by what was
// going on: little more than a second if others were there who had heard the leader.
func TestLeases_overChange(t *testing.T) {
	t.Parallel()
	// The leader changes at 10 s, in the fault that goodRun has from there to 15 s.
	for _, c := range []struct {
		name  string
		late  int64 // after the end of the lease, which began before 10 s
		spoil func(h *history.History)
		ok    bool
	}{
		{"in time", 2400 * ms, func(*history.History) {}, true},
		{"late", 2600 * ms, func(*history.History) {}, false},
		{"late, when all were killed", 2600 * ms, func(h *history.History) { h.Events[0].Fault, h.Events[1].Fault = "kill-all", "kill-all" }, true},
		{"too late, when all were killed", 7600 * ms, func(h *history.History) { h.Events[0].Fault, h.Events[1].Fault = "kill-all", "kill-all" }, false},
		{"late, when two were disturbed at once", 2600 * ms, func(h *history.History) {
			h.Events = slices.Insert(h.Events, 1, history.Event{At: 11 * sec, Kind: history.Injected, Fault: "pause-leader"})
		}, true},
		{"late, long after all were killed", 2600 * ms, func(h *history.History) {
			h.Events = slices.Insert(h.Events, 0, history.Event{At: sec, Kind: history.Injected, Fault: "kill-all"}, history.Event{At: 2 * sec, Kind: history.Healed, Fault: "kill-all"})
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := goodRun()
			for i := range h.Samples {
				if s := &h.Samples[i]; s.At >= 10*sec {
					s.Term = 3
				}
			}
			c.spoil(h)
			claim := &h.Ops[3*49+1] // at 9.8 s
			op := &h.Ops[3*49+2]
			op.Process, op.Call = 2, claim.Return+1000*ms*2001/2000+c.late
			op.Return = op.Call + ms
			var late bool
			for _, p := range Judge(h).Parts {
				for _, v := range p.Violations {
					late = late || v.Rule == RuleLate
				}
			}
			if late == c.ok {
				t.Errorf("late is %t", late)
			}
		})
	}
}
