package workers

import (
	"strings"
	"testing"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

const msec = int64(1e6)

// line is a line of the task 7.
func line(worker string, at int64, event diary.Event, token int64, text string) diary.Line {
	return diary.Line{Worker: worker, At: at * msec, To: at*msec + 1000, Event: event, TaskID: "7", Token: token, Text: text}
}

// events returns the trail of task 7.
func events(all ...history.Told) []history.Told {
	for i := range all {
		all[i].TaskID = 7
	}
	return all
}

func event(name, worker string, token uint64) history.Told {
	return history.Told{Kind: name, Worker: worker, Token: token}
}

// good returns the evidence of a task that was lost by w1 and completed by w2.
func good() evidence {
	s := newStore()
	s.take(diary.Write{TaskID: "7", Token: 1, What: diary.Mark})
	s.take(diary.Write{TaskID: "7", Token: 2, What: diary.Effect})
	e := evidence{
		submitted: []submitted{{key: "t1"}},
		lines: []diary.Line{
			line("w1", 10, diary.Begin, 1, ""), line("w1", 20, diary.Held, 1, ""), line("w1", 60, diary.Ended, 1, "lost"),
			line("w1", 60, diary.Return, 1, "lost"),
			line("w2", 50, diary.Begin, 2, ""), line("w2", 70, diary.Return, 2, "completes"),
			{Worker: "w2", Event: diary.Answered, Text: string(diary.Open), Why: "outcome unknown: Not Found (HTTP status 404)"},
			{Worker: "w2", Event: diary.Answered, Text: string(diary.OfNode)},
		},
		tasks: []*client.Task{{ID: "7", IdempotencyKey: "t1", Status: client.StatusCompleted}},
		store: s,
	}
	e.trail = events(event("submitted", "", 0), event("claimed", "w1", 1), event("lease_expired", "w1", 1), event("claimed", "w2", 2), event("completed", "w2", 2), event("deleted", "", 0))
	return e
}

// rename changes the kind of an event.
func (e *evidence) rename(i int, kind string) { e.trail[i].Kind = kind }

func judged(e evidence) *Report {
	r := newReport()
	e.judge(r)
	return r
}

func TestJudge_good(t *testing.T) {
	t.Parallel()
	r := judged(good())
	if !r.OK() || r.outcomes["completed"] != 1 || r.outcomes["lease_expired"] != 1 || r.handlers != 2 || r.lost != 1 || r.looks != 3 || r.answers[string(diary.Open)] != 1 {
		t.Errorf("%+v", r)
	}
}

// Each of these is impossible.
func TestJudge_bad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		spoil      func(e *evidence)
	}{
		{"two holders", "w1 believed to hold it by token 1, 2.999 ms after w2 did by token 2", func(e *evidence) {
			e.lines[2] = line("w1", 53, diary.Held, 1, "")
		}},
		{"the older begins later", "w1 believed to hold it by token 1", func(e *evidence) {
			e.lines = append(e.lines[2:], line("w1", 80, diary.Begin, 1, ""))
		}},
		{"past its deadline", "after its lease had ended", func(e *evidence) { e.lines[1].Deadline = 19 * msec }},
		{"two handlers of one claim", "token 2 had 2 handlers", func(e *evidence) {
			e.lines = append(e.lines, line("w2", 55, diary.Begin, 2, ""))
		}},
		{"a handler without a claim", "had a handler for token 3", func(e *evidence) {
			e.lines = append(e.lines, line("w2", 80, diary.Begin, 3, ""))
		}},
		{"a handler for another's claim", "w3 had a handler for token 1", func(e *evidence) { e.lines[0].Worker = "w3" }},
		{"tokens that do not grow", "token 2 came after token 5", func(e *evidence) {
			e.trail[1].Token, e.trail[2].Token = 5, 5
			for i := range e.lines[:4] {
				e.lines[i].Token = 5
			}
		}},
		{"what a lost handler returned was sent", `token 1 failed, and its handler returned "lost"`, func(e *evidence) { e.rename(2, "failed") }},
		{"a complete that no handler asked for", "token 1 completed, and had no handler", func(e *evidence) {
			e.lines = e.lines[4:]
			e.rename(2, "completed")
		}},
		{"completed twice", "it ended as [completed completed]", func(e *evidence) { e.rename(2, "completed") }},
		{"a claim that does not end", "token 1 has not ended", func(e *evidence) { e.rename(2, "requeued") }},
		{"a task that is lost", "key t1 is lost", func(e *evidence) { e.tasks = nil }},
		{"a task that is stuck", "is pending, it should be completed", func(e *evidence) { e.tasks[0].Status = client.StatusPending }},
		{"a task that nobody submitted", "nobody should have submitted", func(e *evidence) { e.submitted = nil }},
		{"a key with two tasks", "have the key t1", func(e *evidence) { e.tasks = append(e.tasks, &client.Task{ID: "8", IdempotencyKey: "t1"}) }},
		{"a follow-up that is lost", "key t1-then-1 is lost", func(e *evidence) { e.submitted[0].params.Then = []string{"t1-then-1"} }},
		{"a task that should have failed", "it should be failed", func(e *evidence) { e.submitted[0].params.Fails = true }},
		{"something between decides", "w2 has an answer without a code of claimq's decide over a call: Not Found", func(e *evidence) {
			e.lines[len(e.lines)-1].Text, e.lines[len(e.lines)-1].Why = string(diary.OfOther), "Not Found (HTTP status 404)"
		}},
		{"no effect", "the effect of token 0", func(e *evidence) { delete(e.store.effects, "7") }},
		{"another's effect", "the effect of token 1", func(e *evidence) { e.store.effects["7"] = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := good()
			c.spoil(&e)
			if r := judged(e); !strings.Contains(r.Found(nil), c.want) {
				t.Errorf("got %q, want %q", r.Found(nil), c.want)
			}
		})
	}
}

// The store refuses writes with an older token.
func TestStore_take(t *testing.T) {
	t.Parallel()
	s := newStore()
	for _, c := range []struct {
		token int64
		what  string
		want  bool
	}{{3, diary.Mark, true}, {3, diary.Effect, true}, {2, diary.Effect, false}, {5, diary.Mark, true}, {3, diary.Effect, false}, {5, diary.Effect, true}} {
		if got := s.take(diary.Write{TaskID: "1", Token: c.token, What: c.what}); got != c.want {
			t.Errorf("%s by token %d: %v", c.what, c.token, got)
		}
	}
	if s.refusedCount() != 2 || s.done("1", 5) != nil || s.done("1", 3) == nil || s.done("2", 1) == nil {
		t.Errorf("%+v", s)
	}
}
