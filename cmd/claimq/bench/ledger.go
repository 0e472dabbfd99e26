package bench

// ledger records what one connection did with the tasks of the run, to check at the end that each was done exactly
// once. It is for one goroutine.
type ledger struct {
	submitted []uint64 // ids, as answered
	completed []uint64 // ids, as acknowledged
}

// totals counts, over all connections, the tasks that were done, those done more than once, and those submitted but
// never done.
func totals(all []*ledger) (done, doubled, lost int) {
	times := make(map[uint64]int)
	for _, l := range all {
		for _, id := range l.submitted {
			times[id] += 0 // adds the id, done or not
		}
		for _, id := range l.completed {
			times[id]++
		}
	}
	for _, n := range times {
		switch {
		case n == 0:
			lost++
		case n > 1:
			doubled++
			done++
		default:
			done++
		}
	}
	return done, doubled, lost
}
