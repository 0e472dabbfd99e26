package operations

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/jepsen/history"
)

const second = int64(time.Second)

// submit returns an answered submit.
func submit(at int64, id, index uint64) history.Op {
	return history.Op{
		Process: 1, Kind: history.Submit, Outcome: history.OK, Call: at, Return: at + second/100, TaskID: id, Index: index,
		Key: fmt.Sprint(id), Created: true,
	}
}

// claim returns an answered claim.
func claim(at int64, token, index uint64) history.Op {
	return history.Op{Process: 2, Kind: history.Claim, Outcome: history.OK, Call: at, Return: at + second/100, TaskID: 1, Token: token, Index: index}
}

// A pause of writes that is too long is found, within one act, and with its whole length.
func TestReport_measure(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		at    []int64 // of answered writes, in seconds
		pause time.Duration
	}{
		{"steady", []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, time.Second},
		{"a gap", []int64{1, 2, 3, 8, 9, 10}, 5 * time.Second},
		{"a gap at the end", []int64{1, 2, 3, 4}, 6 * time.Second},
		{"none at all", nil, 10 * time.Second},
	} {
		r := Report{stages: []stage{{name: steady[0], to: 10 * second}}}
		h := &history.History{}
		for _, s := range test.at {
			h.Ops = append(h.Ops, submit(s*second-second/100, uint64(s), uint64(s)))
		}
		r.measure(h, Config{})
		if got := r.stages[0].pause; got != test.pause || (len(r.Violations) > 0) != (test.pause >= PauseMax) {
			t.Errorf("%s: pause %v, want %v; violations %v", test.name, got, test.pause, r.Violations)
		}
	}
	r := Report{}
	r.measure(&history.History{Ops: []history.Op{{Kind: history.Submit, Outcome: history.Unknown, Code: "internal"}}}, Config{})
	if len(r.Violations) != 1 || r.Violations[0].Rule != ruleOdd {
		t.Errorf("an internal error: violations %v", r.Violations)
	}
}

// Operators' acts affect no answers except those that say to try again, or what state the
// task is in.
func TestOdd(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"no_leader": false, "shutting_down": false, "not_connected": false, "stale_claim": false, "task_not_found": false, "refused_with_others": false,
		"invalid_task": true, "forbidden": true, "membership_refused": true, "rate_limited": true, "": true,
	} {
		if got := odd(&history.Op{Outcome: history.Failed, Code: code}); got != want {
			t.Errorf("%q: got %v, want %v", code, got, want)
		}
	}
	for code, want := range map[string]bool{"no_answer": false, "outcome_unknown": false, "internal": true, "odd_answer": true} {
		if got := odd(&history.Op{Outcome: history.Unknown, Code: code}); got != want {
			t.Errorf("%q: got %v, want %v", code, got, want)
		}
	}
}

// An id or a token that the lost cluster had reached is found if the new one gives it
// again.
func TestReport_judgeReuse(t *testing.T) {
	t.Parallel()
	lost := []history.Op{submit(1, 50, 10), claim(2, 70, 11)}
	for _, test := range []struct {
		name string
		op   history.Op
		want string
	}{
		{"fresh id", submit(second, 1000, 5), ""},
		{"fresh token", claim(second, 1000, 5), ""},
		{"old id", submit(second, 50, 5), "the id 50"},
		{"old token", claim(second, 70, 5), "the token 70"},
		{"a token below the highest", claim(second, 3, 5), "the token 3"},
	} {
		r := Report{}
		r.measureLoss(&history.History{Ops: lost})
		r.restoredAt = second / 2
		r.judgeReuse(&history.History{Ops: append(lost[:2:2], test.op)})
		if got := r.Found(nil); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: found %q, want %q", test.name, got, test.want)
		}
	}
}

// Answers after the backup need not be in it; an answer from before the backup began that
// is not in it is found.
func TestReport_surviving(t *testing.T) {
	t.Parallel()
	unknown := submit(3, 9, 0)
	unknown.Outcome = history.Unknown
	act := history.Op{Kind: history.Act, Outcome: history.OK, Call: 1, Return: 3, Index: 23}
	h := &history.History{
		Ops:   []history.Op{submit(1, 1, 10), submit(2, 2, 21), act, unknown, submit(10*second, 30, 5)},
		Trail: []history.Told{{Index: 1010, Kind: "submitted", TaskID: 1}, {Index: 2001, Kind: "restore_begun"}, {Index: 2, Kind: "restored"}, {Index: 5, Kind: "submitted", TaskID: 30}},
	}
	r := Report{backupIndex: 20, backupFrom: 2, restoredAt: 5 * second}
	s := r.surviving(h)
	if len(s.Ops) != 4 || s.Ops[2].TaskID != 9 || s.Ops[0].Index != 10 || s.Ops[1].Outcome != history.Unknown || s.Ops[2].Index != 0 || s.Ops[3].Index != 25 || r.lost != 2 || len(r.Violations) != 0 {
		t.Errorf("left %v, lost %d, violations %v", s.Ops, r.lost, r.Violations)
	}
	if diff := cmp.Diff([]history.Told{{Index: 10, Kind: "submitted", TaskID: 1}, {Index: 22, Kind: "restored"}, {Index: 25, Kind: "submitted", TaskID: 30}}, s.Trail); diff != "" {
		t.Errorf("the trail: -want +got\n%s", diff)
	}
	r = Report{backupIndex: 20, backupFrom: second, restoredAt: 5 * second}
	if r.surviving(h); len(r.Violations) != 2 {
		t.Errorf("an answer from before the backup is not in it, and that is not found: %v", r.Violations)
	}
}
