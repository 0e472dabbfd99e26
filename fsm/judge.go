package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Judge returns what applying cmd at now would answer, if that changes nothing but
// index and clocks: the refusal of a Complete, Fail, Extend, Release or Finalize, or the
// answer to one that is repeated; of a Batch, if each of its ops is refused so, or if it
// is atomic and its first op is. Else, and of every other command, ok is false.
//
// It reads only. The result is made of memory of its own, but for byte slices, which are
// never changed in place.
func (m *Machine) Judge(cmd command.Command, now record.Stamp) (result Result, ok bool) {
	if batch, ok := cmd.(command.Batch); ok {
		return m.judgeBatch(batch, now)
	}
	result, acts := m.judge(cmd, now)
	switch {
	case acts:
		return Result{}, false
	case result.Gone && m.gone.Get(result.Task.ID).ForgetU <= now.U:
		return Result{Code: CodeTaskNotFound}, true
	}
	if result.Task != nil && !result.Gone {
		shown := *result.Task
		result.Task = &shown
	}
	return result, true
}

// judge returns acts true if the command, applied at now, would change anything, else
// its answer, which has the state's own task.
func (m *Machine) judge(cmd command.Command, now record.Stamp) (result Result, acts bool) {
	switch c := cmd.(type) {
	case command.Complete:
		if result, acts = m.holdOf(c.Hold, record.OutcomeCompleted); result.Repeated {
			result = m.repeatThen(result)
		}
		return result, acts
	case command.Fail:
		return m.holdOf(c.Hold, record.OutcomeFailed)
	case command.Extend:
		return m.holdOf(c.Hold, record.OutcomeNone)
	case command.Release:
		return m.holdOf(c.Hold, record.OutcomeReleased)
	case command.Finalize:
		return m.finalizable(c, max(now.U, m.header.Stamp.U))
	}
	return Result{}, true
}

// IsJudged reports whether Judge may know the answer to such a command.
func IsJudged(cmd command.Command) bool {
	switch cmd.(type) {
	case command.Complete, command.Fail, command.Extend, command.Release, command.Finalize, command.Batch:
		return true
	}
	return false
}

// judgeBatch is Judge of a batch. An op that is refused changes nothing for those
// behind it.
func (m *Machine) judgeBatch(c command.Batch, now record.Stamp) (result Result, ok bool) {
	var results []Result
	answered := 0
	for i, op := range c.Ops {
		r, ok := m.Judge(op, now)
		switch {
		case !ok || r.Code == "":
			return Result{}, false
		case c.Atomic:
			refusal, _ := refusalOf(op, r)
			return refusal, true
		case results == nil:
			results = make([]Result, len(c.Ops))
		}
		if r.Task != nil {
			r.Task = shownIn(&answered, r.Task)
		}
		results[i] = r
	}
	return Result{Results: results}, len(results) > 0
}
