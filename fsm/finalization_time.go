package fsm

// overU returns when the claim is over for others, by the lease clock: after its
// end as much longer as two clocks may differ in a claim of that length
// (docs/guarantees.md), and 2 ms, as the clocks are whole milliseconds. So a
// processor that counts from before it sent its claim never has company.
func (f *Finalization) overU() int64 { return f.EndU + overtime(f.TimeoutMS) }

// overtime is what overU adds for a claim of that length: 0.05 % and 2 ms.
func overtime(timeoutMS int64) int64 { return timeoutMS/2000 + 2 }

// holder returns who holds the claim at that time by the lease clock, "" if nobody
// does. f may be nil.
func (f *Finalization) holder(u int64) string {
	if f == nil || u >= f.overU() {
		return ""
	}
	return f.ProcessorID
}

// lasting returns the finalization as it is when its claim is to last
// timeoutMS from now. That is the claim's length from then on; but it is over no
// earlier than it was.
func (f *Finalization) lasting(timeoutMS, u int64) *Finalization {
	longer := *f
	longer.TimeoutMS = timeoutMS
	longer.EndU = max(u+timeoutMS, f.overU()-overtime(timeoutMS))
	return &longer
}

// isFinalizing reports whether the task is a parent that has a claim, over or not.
func isFinalizing(t *Task) bool {
	return t.Status == StatusRunning && t.Parent() != nil && t.Parent().Finalization != nil && t.Parent().Finalization.ProcessorID != ""
}

// FinalizationCount returns how many claims of finalizations there are. Like those
// of tasks, they end by the lease clock.
func (m *Machine) FinalizationCount() int { return m.finalizing.Len() }

// clearFinalizations takes away claims that are over, a bounded number. Which
// ones a tick reaches changes no answer: who looks at one goes by the time alone.
func (m *Machine) clearFinalizations() {
	for range dueTickMax {
		id, ok := m.finalizing.Due(m.header.Stamp.U)
		if !ok {
			return
		}
		m.replaceFinalization(id, &Finalization{Attempts: m.tasks.Get(id).Parent().Finalization.Attempts})
	}
}
