package check

import (
	"bytes"
	"encoding/json"
)

// checkFinal checks that all has ended, and how parents did. What the state at the end
// has is a last read, too, for the search.
func (c *checker) checkFinal(t *task) {
	if t.final == nil {
		return
	}
	if c.drained && !hasEnded(t.final.Status) {
		c.Violate(RuleUnfinished, t.id, t.ops, "task %d is %s at the end, though the queue was drained", t.id, t.final.Status)
	}
	if t.plan != nil && hasEnded(t.final.Status) {
		c.checkFinalParent(t)
	}
}

// checkFinalParent checks how the parent ended by what its steps are at the end.
// How one ends that a processor ends is the processor's choice.
func (c *checker) checkFinalParent(parent *task) {
	f := parent.final
	results := map[string]json.RawMessage{}
	completed := 0
	for place, step := range parent.plan.Steps {
		t := c.tasks[parent.id+1+uint64(place)].final
		if t == nil {
			return // it is lost, as the search says
		}
		if !hasEnded(t.Status) {
			c.Violate(RuleParentEnd, parent.id, nil, "task %d is %s at the end, and its step %d is %s", parent.id, f.Status, t.ID, t.Status)
		}
		if t.Status == statusCompleted {
			completed++
			results[step.Name] = raw(t.Result)
		}
	}
	if parent.plan.ByClaim {
		if f.Worker == "" {
			c.Violate(RuleParentEnd, parent.id, nil, "task %d is %s at the end, and no processor did it", parent.id, f.Status)
		}
		return
	}
	want := statusFailed
	if completed == len(parent.plan.Steps) || parent.plan.Continue && completed > 0 {
		want = statusCompleted
	}
	switch {
	case f.Status != want || f.Worker != "":
		c.Violate(RuleParentEnd, parent.id, nil, "task %d ended as %s of %q, by itself; %d of its %d steps completed, so it should be %s",
			parent.id, f.Status, f.Worker, completed, len(parent.plan.Steps), want)
	case want == statusCompleted && !sameResults(f.Result, results):
		c.Violate(RuleParentEnd, parent.id, nil, "task %d has the result %s; those of its steps are %s", parent.id, f.Result, results)
	}
}

// raw is a result as JSON, null if there is none.
func raw(result string) json.RawMessage {
	if result == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(result)
}

// sameResults reports whether result is an object of just these.
func sameResults(result string, want map[string]json.RawMessage) bool {
	var got map[string]json.RawMessage
	if json.Unmarshal([]byte(result), &got) != nil || len(got) != len(want) {
		return false
	}
	for name := range want {
		if !bytes.Equal(compact(got[name]), compact(want[name])) {
			return false
		}
	}
	return true
}

// compact drops the spaces of JSON; what is none stays as it is.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
