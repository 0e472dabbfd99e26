package workers

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// evidence is all data from a run.
type evidence struct {
	submitted []submitted
	lines     []diary.Line // of all workers, each worker's in order
	tasks     []*client.Task
	trail     []history.Told
	store     *store
	served    bool // the workers' programs may die without their worker
}

// judge reads the evidence, and reports what is wrong with it.
func (r *run) judge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	e := evidence{submitted: r.submitted, store: r.store, served: len(r.cfg.Served) > 0}
	for _, s := range r.crew.slots {
		for _, p := range s.lives {
			diaries, err := filepath.Glob(diaryOf(p) + "*")
			if err != nil {
				return err
			}
			for _, path := range diaries {
				lines, err := diary.Read(path, p.ID)
				if err != nil {
					return err
				}
				e.lines = append(e.lines, lines...)
			}
			// claimq work exits with 1 if it was asked to end and could not settle every claim.
			if code := p.ExitCode(); code > 0 && code != 128+int(syscall.SIGKILL) && !(e.served && code == 1) {
				r.report.found(ruleStop, "worker %s ended with exit code %d:\n%s", p.ID, code, p.LogTail(20))
			}
		}
		s.way.add(r.report)
	}
	for t, err := range r.client.Tasks(ctx, client.Filter{}) {
		if err != nil {
			return fmt.Errorf("read the state at the end: %w", err)
		}
		e.tasks = append(e.tasks, t)
	}
	var err error
	if e.trail, err = r.rec.Trail(ctx, r.cluster.URLs()); err != nil { // not with the client library, which is under test
		return err
	}
	e.judge(r.report)
	return nil
}

// judge checks everything that is known about each task.
func (e *evidence) judge(r *Report) {
	r.tasks, r.refused = len(e.tasks), e.store.refusedCount()
	stories := e.stories()
	for _, s := range stories {
		s.count(r)
		s.beliefs(r)
		s.tokens(r)
		s.outcomes(r, e.served)
	}
	e.ends(r, stories)
	e.answers(r)
}

// answers checks that only nodes decided the calls of bare workers.
func (e *evidence) answers(r *Report) {
	for _, l := range e.lines {
		if l.Event != diary.Answered {
			continue
		}
		r.answers[l.Text]++
		if diary.Answer(l.Text) == diary.OfOther {
			r.found(ruleNodes, "%s has an answer without a code of claimq's decide over a call: %s", l.Worker, l.Why)
		}
	}
}

// story is everything that is known about one task.
type story struct {
	id       string
	handlers map[int64]*handler // by token
	order    []*handler         // by token
	granted  []*grant           // from the trail, in order
	byToken  map[int64]*grant
	ended    []string // completed and final failures, from the trail
}

// handler is one handler of a task, from its worker's diary.
type handler struct {
	token    int64
	begins   []diary.Line
	held     []diary.Line // looks that found the claim held, including the first
	returned diary.Outcome
}

// grant is one claim of a task, from the trail.
type grant struct {
	token   int64
	worker  string
	outcome string // event that ended it, "" if none
}

// stories groups the evidence by task.
func (e *evidence) stories() map[string]*story {
	stories := map[string]*story{}
	of := func(id string) *story {
		if stories[id] == nil {
			stories[id] = &story{id: id, handlers: map[int64]*handler{}, byToken: map[int64]*grant{}}
		}
		return stories[id]
	}
	for _, l := range e.lines {
		if l.TaskID != "" {
			of(l.TaskID).add(l)
		}
	}
	for i := range e.trail {
		if told := &e.trail[i]; told.TaskID != 0 {
			of(strconv.FormatUint(told.TaskID, 10)).tell(told)
		}
	}
	for _, s := range stories {
		slices.SortFunc(s.order, func(a, b *handler) int { return cmp.Compare(a.token, b.token) })
	}
	return stories
}

// add adds a line of a diary.
func (s *story) add(l diary.Line) {
	h := s.handlers[l.Token]
	if h == nil {
		h = &handler{token: l.Token}
		s.handlers[l.Token] = h
		s.order = append(s.order, h)
	}
	switch l.Event {
	case diary.Begin:
		h.begins = append(h.begins, l)
		h.held = append(h.held, l)
	case diary.Held:
		h.held = append(h.held, l)
	case diary.Return:
		h.returned = diary.Outcome(l.Text)
	}
}

// tell adds an event of the trail.
func (s *story) tell(told *history.Told) {
	token := int64(told.Token)
	switch told.Kind {
	case "claimed":
		g := &grant{token: token, worker: told.Worker}
		s.granted = append(s.granted, g)
		s.byToken[token] = g
	case "completed", "failed", "released", "lease_expired":
		if g := s.byToken[token]; g != nil && g.outcome == "" {
			g.outcome = told.Kind
		} else {
			s.ended = append(s.ended, told.Kind+" again")
		}
		if told.Kind == "completed" {
			s.ended = append(s.ended, told.Kind)
		}
	}
}

// beliefs looks for two handlers that both believed to hold the task: one found that it
// held the task after one with a greater token had done so. Both looks may have been
// recorded late, so each counts with the time that is safe to assume.
func (s *story) beliefs(r *Report) {
	for i, h := range s.order {
		for _, l := range h.held {
			if l.Deadline != 0 && l.At >= l.Deadline {
				r.past++
				r.found(ruleDeadline, "task %s: %s believed to hold it by token %d, %.3f ms after its lease had ended", s.id, l.Worker, h.token, ms(l.At-l.Deadline))
			}
		}
		if len(h.held) == 0 {
			continue
		}
		last := slices.MaxFunc(h.held, func(a, b diary.Line) int { return cmp.Compare(a.At, b.At) })
		for _, later := range s.order[i+1:] {
			if len(later.held) > 0 && last.At >= later.held[0].To {
				r.overlaps++
				r.found(ruleHolders, "task %s: %s believed to hold it by token %d, %.3f ms after %s did by token %d",
					s.id, last.Worker, h.token, ms(last.At-later.held[0].To), later.held[0].Worker, later.token)
			}
		}
	}
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

// tokens checks that tokens increase, and that every handler had a separate claim.
func (s *story) tokens(r *Report) {
	for i, g := range s.granted {
		if i > 0 && g.token <= s.granted[i-1].token {
			r.found(ruleHandler, "task %s: token %d came after token %d", s.id, g.token, s.granted[i-1].token)
		}
	}
	for _, h := range s.order {
		if len(h.begins) > 1 {
			r.found(ruleHandler, "task %s: token %d had %d handlers", s.id, h.token, len(h.begins))
		}
		g := s.byToken[h.token]
		for _, l := range h.begins {
			if g == nil || g.worker != l.Worker {
				r.found(ruleHandler, "task %s: %s had a handler for token %d, which the trail knows as %+v", s.id, l.Worker, h.token, g)
			}
		}
	}
}

// allowed reports whether a claim may have been settled that way when its handler returned
// that outcome. (It may always have expired, because the call may not have got through.)
func allowed(returned diary.Outcome, settled string) bool {
	switch returned {
	case diary.Completes:
		return settled == "completed"
	case diary.FailsOnce, diary.FailsAll, diary.Refused, diary.Unwritten:
		return settled == "failed"
	case diary.Panics: // the worker may have begun to stop just before
		return settled == "failed" || settled == "released"
	case diary.Snoozes, diary.Stops:
		return settled == "released"
	}
	return false // lost: nothing more is sent. Or it did not return
}

// outcomes checks that each claim ended as its handler said. If the handler's program has died, its worker fails or
// releases the claim, whatever the handler wrote last.
func (s *story) outcomes(r *Report, served bool) {
	for _, g := range s.granted {
		h := s.handlers[g.token]
		switch {
		case g.outcome == "":
			r.found(ruleSettled, "task %s: the claim by token %d has not ended", s.id, g.token)
		case g.outcome == "lease_expired":
		case h == nil && g.outcome == "released": // released before it had a handler
		case served && (g.outcome == "failed" || g.outcome == "released"):
		case h == nil:
			r.found(ruleSettled, "task %s: token %d %s, and had no handler", s.id, g.token, g.outcome)
		case !allowed(h.returned, g.outcome):
			r.found(ruleSettled, "task %s: token %d %s, and its handler returned %q", s.id, g.token, g.outcome, h.returned)
		}
	}
}

// ends checks that every task ended exactly once, as intended, with its effect in the store
// and its follow-up tasks submitted.
func (e *evidence) ends(r *Report, stories map[string]*story) {
	byKey := map[string]*client.Task{}
	for _, t := range e.tasks {
		if other := byKey[t.IdempotencyKey]; other != nil {
			r.found(ruleOnce, "tasks %s and %s have the key %s", other.ID, t.ID, t.IdempotencyKey)
		}
		byKey[t.IdempotencyKey] = t
	}
	follow := map[string]bool{} // the keys of all tasks that must exist
	for _, sub := range e.submitted {
		follow[sub.key] = true
		goal := client.StatusCompleted
		if sub.params.Fails {
			goal = client.StatusFailed
		}
		e.end(r, byKey[sub.key], stories, sub.key, goal)
		for _, key := range sub.params.Then {
			if goal == client.StatusCompleted {
				follow[key] = true
				e.end(r, byKey[key], stories, key, goal)
			}
		}
	}
	for key, t := range byKey {
		if !follow[key] {
			r.found(ruleOnce, "task %s: nobody should have submitted %q", t.ID, key)
		}
	}
}

// end checks the end of one task.
func (e *evidence) end(r *Report, t *client.Task, stories map[string]*story, key string, goal client.TaskStatus) {
	if t == nil {
		r.found(ruleOnce, "the task with the key %s is lost", key)
		return
	}
	s := stories[t.ID]
	if t.Status != goal || s == nil {
		r.found(ruleOnce, "task %s is %s, it should be %s", t.ID, t.Status, goal)
		return
	}
	var want []string
	if goal == client.StatusCompleted {
		want = []string{"completed"}
	}
	if !slices.Equal(s.ended, want) {
		r.found(ruleOnce, "task %s: it ended as %v, not %v", t.ID, s.ended, want)
	}
	if len(s.granted) == 0 {
		r.found(ruleOnce, "task %s has ended without a claim", t.ID)
		return
	}
	last := s.granted[len(s.granted)-1]
	if last.outcome != string(goal) {
		r.found(ruleOnce, "task %s is %s, and its last claim %s", t.ID, t.Status, last.outcome)
	}
	if err := e.store.done(t.ID, last.token); err != nil {
		r.found(ruleEffect, "task %s ended by token %d: %v", t.ID, last.token, err)
	}
}
