package parents

import (
	"fmt"
	"slices"
	"strings"
)

// judge holds what the trail told, what was answered and what the cluster holds
// against what must have become of each parent. at may be nil: the run could not
// be finished, and the trail alone is looked at.
func (l *Ledger) judge(seed int64, at *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.parents {
		l.judgeTrail(p)
		if at != nil {
			l.judgeState(p, seed, at)
		}
	}
	for id := range l.tasks {
		if t := &l.tasks[id]; t.submitted > 0 && t.parent == nil {
			l.violate("task %d was submitted, and no acknowledged parent has it", id)
		}
	}
	if at != nil {
		l.judgeCounts(at)
	}
}

// judgeTrail checks the lives of the parent and its steps: each step was claimed
// only once all that it depends on had completed, completed once at most, and has
// ended; the parent ended after them all, once.
func (l *Ledger) judgeTrail(p *parent) {
	own := &l.tasks[p.id]
	name := fmt.Sprintf("parent %d (task %d, %s)", p.Number, p.id, p.Form)
	if own.submitted == 0 {
		l.violate("%s: its submit was acknowledged, and the trail does not tell it", name)
		return
	}
	if own.status == open {
		l.violate("%s is stuck: it has not ended; its steps are %s", name, l.stepsOf(p))
		return
	}
	finalizeds := uint8(1)
	if own.status == cancelled {
		finalizeds = 0
	}
	if own.ends != 1 || own.finalizeds != finalizeds {
		l.violate("%s has %d ends and was finalized %d times, as %s", name, own.ends, own.finalizeds, own.status)
	}
	if own.finalized > 0 && own.finalized+1 != own.ended {
		l.violate("%s: its end does not follow its finalization", name)
	}
	if own.claimed > 0 {
		l.violate("%s was claimed", name)
	}
	for place, depends := range p.DependsOn {
		step := &l.tasks[p.id+1+uint64(place)]
		what := fmt.Sprintf("%s: step %s", name, stepName(place))
		if step.status == open || step.last > own.ended {
			l.violate("%s: the parent ended before it; it is %s", what, step.status)
		}
		if step.submitted != own.submitted+1+uint32(place) {
			l.violate("%s was not submitted with its parent", what)
		}
		for _, on := range depends {
			before := &l.tasks[p.id+1+uint64(on)]
			if step.claimed > 0 && (before.completed == 0 || before.completed > step.claimed) {
				l.violate("%s was claimed before %s, which it depends on, had completed", what, stepName(on))
			}
		}
	}
}

// stepsOf says how the parent's steps are.
func (l *Ledger) stepsOf(p *parent) string {
	var all []string
	for place := range p.DependsOn {
		t := &l.tasks[p.id+1+uint64(place)]
		said := t.status.String()
		if t.token != 0 {
			said = "claimed"
		}
		all = append(all, fmt.Sprintf("%s %s", stepName(place), said))
	}
	return strings.Join(all, ", ")
}

// judgeState checks what the cluster holds of the parent and its steps.
func (l *Ledger) judgeState(p *parent, seed int64, at *state) {
	name := fmt.Sprintf("parent %d (task %d, %s)", p.Number, p.id, p.Form)
	own := at.tasks[p.id]
	if own == nil {
		l.violate("%s is lost", name)
		return
	}
	told := &l.tasks[p.id]
	if own.key != p.key(seed) || own.status != told.status.String() {
		l.violate("%s is held with key %q as %s, and the trail says %s", name, own.key, own.status, told.status)
	}
	done := make([]bool, len(p.DependsOn))
	for place := range p.DependsOn {
		step := at.tasks[p.id+1+uint64(place)]
		if step == nil || step.parentID != p.id || step.step != stepName(place) {
			l.violate("%s: step %s is not held as such: %+v", name, stepName(place), step)
			return
		}
		if told := l.tasks[p.id+1+uint64(place)].status; step.status != told.String() {
			l.violate("%s: step %s is held as %s, and the trail says %s", name, stepName(place), step.status, told)
		}
		done[place] = step.status == "completed"
		if done[place] && step.result != stepResult(p.Number, place) {
			l.violate("%s: step %s has the result %s", name, stepName(place), step.result)
		}
	}
	if p.cancelled {
		if own.status != "cancelled" {
			l.violate("%s: its cancel was acknowledged, and it is %s", name, own.status)
		}
		return
	}
	l.judgeSteps(p, name, at)
	want := p.want(done, told.finalizer)
	if own.status != want.status || own.result != want.result || own.error != want.error || own.worker != told.finalizer || p.ByClaim == (told.finalizer == "") {
		l.violate("%s ended as %s of %q with the result %s and the error %q; want %s of %q, %s, %q (by claim: %v)",
			name, own.status, own.worker, own.result, own.error, want.status, told.finalizer, want.result, want.error, p.ByClaim)
	}
}

// judgeSteps checks how the steps of a parent ended that was not cancelled.
func (l *Ledger) judgeSteps(p *parent, name string, at *state) {
	for place, lost := range p.lost() {
		want := []string{"completed"}
		switch {
		case place == p.Bad:
			want = []string{"failed"}
		case lost:
			want = []string{"cancelled"}
		case p.Bad >= 0 && !p.Continue:
			want = []string{"completed", "cancelled"} // whichever came first
		}
		if got := at.tasks[p.id+1+uint64(place)]; !slices.Contains(want, got.status) || place == p.Bad && got.error != badError {
			l.violate("%s: step %s ended as %s (%s); want %s; %s", name, stepName(place), got.status, got.error, strings.Join(want, " or "), l.stepsOf(p))
		}
	}
}

// judgeCounts checks that the counts add up.
func (l *Ledger) judgeCounts(at *state) {
	told := map[string]int64{}
	for id := range l.tasks {
		if t := &l.tasks[id]; t.submitted > 0 {
			told[t.status.String()]++
		}
	}
	for name, count := range at.counts {
		if count != told[name] || count != at.listed[name] {
			l.violate("%d tasks are %s by the cluster's counts, %d by its list, %d by the trail", count, name, at.listed[name], told[name])
		}
	}
	for name, count := range told {
		if at.counts[name] != count {
			l.violate("%d tasks are %s by the cluster's counts, %d by the trail", at.counts[name], name, count)
		}
	}
	for i := range at.hashes {
		if at.hashes[i] != at.hashes[0] {
			l.violate("the nodes do not hold the same: their lists have the hashes %v", at.hashes)
			break
		}
	}
}
