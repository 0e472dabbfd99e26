package check

import (
	"slices"
	"strings"

	"github.com/claimq/claimq/jepsen/history"
)

// checkWhole checks that of the parts of a call that is one step all were done or
// none, by what the answers and the state at the end show. So calls of unknown
// outcome are judged. That a refused one did nothing is what other rules say.
func (c *checker) checkWhole() {
	w := c.findWhole()
	for _, ops := range w.calls {
		done, not := -1, -1
		for _, i := range ops {
			switch w.tookEffect(i) {
			case yes:
				done = i
			case no:
				not = i
			}
		}
		if done >= 0 && not >= 0 {
			c.violate(RuleWhole, c.h.Ops[done].TaskID, ops, "one step was done in part: %s was done, and %s was not",
				part(&c.h.Ops[done]), part(&c.h.Ops[not]))
		}
	}
}

// part names an op of a call.
func part(op *history.Op) string {
	if op.Kind == history.Submit {
		return "the submit of key " + op.Key
	}
	return "the " + string(op.Kind)
}

// answer is what is known of a question.
type answer uint8

const (
	perhaps answer = iota
	yes
	no
)

// whole is the calls that are one step and may have had an effect.
type whole struct {
	*index
	calls [][]int
	keys  []string // by call: what it submits, to know its repeats by
	of    map[made]int
}

// made names a call.
type made struct {
	process int
	call    int64
}

func (x *index) findWhole() *whole {
	w := &whole{index: x, of: map[made]int{}}
	for i := range x.h.Ops {
		op := &x.h.Ops[i]
		if !op.Whole || op.Outcome == history.Failed {
			continue
		}
		k := made{op.Process, op.Call}
		n, ok := w.of[k]
		if !ok {
			n = len(w.calls)
			w.of[k] = n
			w.calls = append(w.calls, nil)
		}
		w.calls[n] = append(w.calls[n], i)
	}
	for _, ops := range w.calls {
		var keys []string
		for _, i := range ops {
			if x.h.Ops[i].Kind == history.Submit {
				keys = append(keys, x.h.Ops[i].Key)
			}
		}
		slices.Sort(keys)
		w.keys = append(w.keys, strings.Join(keys, "\n"))
	}
	return w
}

// tookEffect says whether what op i asked for was done, by this call or a repeat.
func (w *whole) tookEffect(i int) answer {
	op := &w.h.Ops[i]
	switch {
	case op.Kind == history.Submit && op.Key != "":
		switch {
		case len(w.index.keys[op.Key].seen) > 0:
			return yes
		case w.h.Final != nil:
			return no
		}
	case op.Kind == history.Complete:
		return w.completed(i)
	case op.Outcome == history.OK && op.TaskID != 0:
		return yes
	}
	return perhaps
}

// completed says whether the complete took effect. It does not know if another
// call may have done it.
func (w *whole) completed(i int) answer {
	op := &w.h.Ops[i]
	t, mine := w.tasks[op.TaskID], w.keys[w.of[made{op.Process, op.Call}]]
	acked := false
	for _, j := range t.ops {
		other := &w.h.Ops[j]
		if other.Kind != history.Complete || other.Token != op.Token || other.Outcome == history.Failed {
			continue
		}
		n, ok := w.of[made{other.Process, other.Call}]
		if !ok || w.keys[n] != mine {
			return perhaps
		}
		acked = acked || other.Outcome == history.OK
	}
	switch f := t.final; {
	case acked, f != nil && f.Status == statusCompleted && f.Token == op.Token:
		return yes
	case f != nil:
		return no
	}
	return perhaps
}
