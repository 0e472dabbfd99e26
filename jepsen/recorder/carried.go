package recorder

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// codeRedirected is of a call that was sent on to the leader: nothing was done.
const codeRedirected = "redirected"

// Carried is a call that somebody else makes, and that a proxy writes down. It
// is what the proxy was answered, whether or not that got to who asked.
type Carried struct {
	rec     *Recorder
	process int
	call    int64
}

// Carry begins a call that is passed on now.
func (r *Recorder) Carry() *Carried {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Carried{rec: r}
	if n := len(r.idle); n > 0 {
		c.process, r.idle = r.idle[n-1], r.idle[:n-1]
	} else {
		r.callers++
		c.process = r.callers
	}
	c.call = r.Now()
	return c
}

// Answered records the call, if it is one of those that the checker knows, with
// what was answered, or err. A complete that submits and claims is several ops at
// the same time.
func (c *Carried) Answered(method, path string, body []byte, status int, header http.Header, answer []byte, err error) {
	whole := history.Op{Process: c.process, Call: c.call, Return: c.rec.Now()}
	whole.Outcome, whole.Code = judge(status, answer, err)
	if err == nil && status == http.StatusTemporaryRedirect {
		whole.Outcome, whole.Code = history.Failed, codeRedirected
	}
	whole.Index, _ = strconv.ParseUint(header.Get("X-Claimq-Index"), 10, 64) // absent: 0
	var a wire.Answer
	if whole.Outcome == history.OK {
		if json.Unmarshal(answer, &a) != nil || !a.Success {
			whole.Outcome, whole.Code = history.Unknown, CodeOddAnswer
		}
		whole.Repeated = a.Repeated
	}
	var ops []history.Op
	if method == http.MethodPost {
		ops = carriedOps(whole, path, body, answer, &a)
	}
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	c.rec.ops = append(c.rec.ops, ops...)
	c.rec.idle = append(c.rec.idle, c.process)
}

// carriedOps are the ops of a call. whole says what is alike in all.
func carriedOps(whole history.Op, path string, body, answer []byte, a *wire.Answer) []history.Op {
	switch path {
	case "/api/tasks":
		var t wire.NewTask
		if json.Unmarshal(body, &t) != nil {
			return nil
		}
		var done []*wire.Task
		if a.Task != nil {
			done = append(done, a.Task)
		}
		op := with(whole, submitOf(&t))
		op.Created = a.Created
		return taken(op, done, false)
	case "/api/tasks/claim":
		var asked wire.Claim
		if json.Unmarshal(body, &asked) != nil {
			return nil
		}
		return claimed(whole, &asked, a)
	case "/api/batch":
		return batched(whole, body, answer)
	}
	id, verb, _ := strings.Cut(strings.TrimPrefix(path, "/api/tasks/"), "/")
	number, err := strconv.ParseUint(id, 10, 64)
	var s wire.Settle
	if err != nil || json.Unmarshal(body, &s) != nil {
		return nil
	}
	switch kind := history.Kind(verb); kind {
	case history.Complete, history.Fail, history.Extend, history.Release:
		return settled(whole, kind, number, &s, a)
	}
	return nil
}

// with is the op of a call with what is alike in all of its ops.
func with(whole, op history.Op) history.Op {
	op.Process, op.Call, op.Return, op.Index, op.Node, op.Whole = whole.Process, whole.Call, whole.Return, whole.Index, whole.Node, whole.Whole
	op.Outcome, op.Code, op.Repeated = whole.Outcome, whole.Code, whole.Repeated
	return op
}

// taken is the op for each of the tasks that an answer names, or without one.
func taken(op history.Op, tasks []*wire.Task, claims bool) []history.Op {
	if op.Outcome != history.OK || len(tasks) == 0 {
		return []history.Op{op}
	}
	ops := make([]history.Op, len(tasks))
	for i, t := range tasks {
		ops[i] = op
		ops[i].TaskID = t.ID
		if claims && t.ClaimToken != nil {
			ops[i].Token = *t.ClaimToken
			if t.ClaimState == "" { // of a repeat it shows what is now
				ops[i].Seen = seen(t)
			}
		}
	}
	return ops
}

// claimed are the ops of a claim.
func claimed(whole history.Op, asked *wire.Claim, a *wire.Answer) []history.Op {
	tasks := make([]*wire.Task, 0, len(a.Tasks)+1)
	for i := range a.Tasks {
		tasks = append(tasks, &a.Tasks[i])
	}
	if len(tasks) == 0 && a.Task != nil {
		tasks = append(tasks, a.Task)
	}
	return taken(with(whole, claimOf(asked)), tasks, true)
}

// settled are the ops of a settling call: its own, a submit for each task that
// follows, and a claim.
func settled(whole history.Op, kind history.Kind, id uint64, s *wire.Settle, a *wire.Answer) []history.Op {
	op := with(whole, history.Op{Kind: kind, TaskID: id, Token: s.ClaimToken, Worker: s.WorkerID, Result: string(s.Result), LeaseMS: s.LeaseMS, DelayMS: s.DelayMS})
	if a.Task != nil && !a.Repeated {
		op.Seen = seen(a.Task)
	}
	ops := []history.Op{op}
	for i := range s.Submit {
		op := with(whole, submitOf(&s.Submit[i]))
		if i < len(a.Submitted) {
			// A repeat tells what the first complete created.
			op.TaskID, op.Created = a.Submitted[i].ID, a.Submitted[i].Created && !a.Repeated
		}
		ops = append(ops, op)
	}
	if s.Claim != nil {
		var tasks []*wire.Task
		if a.Claimed != nil && a.Claimed.Task != nil {
			tasks = append(tasks, a.Claimed.Task)
		}
		ops = append(ops, taken(with(whole, claimOf(s.Claim)), tasks, true)...)
	}
	return ops
}

// batched are the ops of a batch that gives claims back.
func batched(whole history.Op, body, answer []byte) []history.Op {
	var asked struct {
		Ops []struct {
			Op string
			ID uint64
			wire.Settle
		}
	}
	var done wire.BatchAnswer
	if json.Unmarshal(body, &asked) != nil {
		return nil
	}
	if whole.Outcome == history.OK && json.Unmarshal(answer, &done) != nil {
		whole.Outcome, whole.Code = history.Unknown, CodeOddAnswer
	}
	var ops []history.Op
	for i := range asked.Ops {
		if asked.Ops[i].Op != string(history.Release) {
			continue
		}
		op := whole
		a := &wire.Answer{}
		if i < len(done.Results) {
			r := &done.Results[i]
			a, op.Repeated = &r.Answer, r.Repeated
			if r.Code != "" {
				op.Outcome, op.Code = history.Failed, string(r.Code)
			}
		}
		ops = append(ops, settled(op, history.Release, asked.Ops[i].ID, &asked.Ops[i].Settle, a)...)
	}
	return ops
}
