package plants

// workerProgram is what the bugs of Workers are built into.
const workerProgram = "./jepsen/workers/worker"

// Workers returns bugs in the client library's worker, and one in a handler. They
// are built into the worker process of package workers, whose runs must find them.
func Workers() []Plant {
	return []Plant{
		{
			Name: "context-by-timer", What: "a handler's context ends by its timer alone: it does not look at the clock", program: workerProgram,
			edits: []edit{{"client/keepalive.go", "	if h.cl.hasLapsed() {\n", "	if false {\n"}},
		},
		{
			Name: "deadline-from-answer", What: "a lease is counted from when its answer was read", program: workerProgram,
			edits: []edit{{"internal/repeat/lease.go", "	return sentAt.Add(left - left/1000)\n", "	return sentAt.Add(time.Since(sentAt) + left)\n"}},
		},
		{
			Name: "extends-ignored", What: "a handler goes on until the server refuses an extend", program: workerProgram,
			edits: []edit{{"client/keepalive.go", "	return cl.endsAt.Add(-min(cl.lease/20, keepAliveMarginMax))\n", "	return cl.endsAt.Add(time.Hour)\n"}},
		},
		{
			Name: "context-ignored", What: "a handler does not look at its context", program: workerProgram,
			edits: []edit{{"jepsen/workers/worker/hand.go", "	err := ctx.Err()\n", "	err := context.WithoutCancel(ctx).Err()\n"}},
		},
		{
			Name: "snooze-completes", What: "a task that is given back is completed", program: workerProgram,
			edits: []edit{{"client/attemptsettle.go", "		a.report(&a.r.w.counts.released, a.release(delay))\n", "		_ = delay\n		return a.complete()\n"}},
		},
	}
}
