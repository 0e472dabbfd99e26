package parents

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

// processor ends parents.
type processor struct {
	*Load
	*recorder.Caller
	rng  *rand.Rand
	name string
}

// process is one processor after the other: when one dies, the next comes.
func (l *Load) process(i int) {
	p := &processor{Load: l, Caller: l.rec.Caller(l.cfg.Nodes, i), rng: l.rng(3000 + i)}
	for life := 1; ; life++ {
		p.name = fmt.Sprintf("p%d:%d", i+1, life)
		for lives := true; lives; {
			select {
			case <-l.ctx.Done():
				return
			case j := <-l.jobs:
				lives = p.handle(j)
			}
		}
	}
}

// timeoutMaxSeconds is how long a claim of a finalization lasts at most.
const timeoutMaxSeconds = 3

// handle does what processors do with a parent. It returns false when the
// processor has died.
func (p *processor) handle(j job) bool {
	if p.ledger.hasEnded(j.id) && p.rng.Intn(10) > 0 { // another was faster
		return true
	}
	if p.rng.Intn(12) == 0 { // without asking first
		p.finalize(j, 0)
		return true
	}
	req := wire.FinalizationClaim{ProcessorID: p.name, TimeoutSeconds: 1 + p.rng.Int63n(timeoutMaxSeconds)}
	claim := p.again(func() history.Op { return p.ClaimFinalization(p.ctx, j.id, req) })
	if claim.Outcome != history.OK || !claim.Done {
		if claim.Holder != "" && p.rng.Intn(8) == 0 { // it will not hear of it
			p.finalize(j, 0)
		}
		return true
	}
	switch n := p.rng.Intn(1000); {
	case n < 40: // it dies
		p.abandons.Add(1)
		return false
	case n < 70: // it gives it back
		p.again(func() history.Op { return p.ReleaseFinalization(p.ctx, j.id, p.name) })
		return true
	case n < 80: // much too late
		_ = p.pause(p.ctx, time.Duration(req.TimeoutSeconds)*time.Second+time.Duration(p.rng.Intn(200))*time.Millisecond)
	case n < 90: // about when the time is over
		_ = p.pause(p.ctx, time.Duration(req.TimeoutSeconds)*time.Second*95/100+time.Duration(p.rng.Intn(100))*time.Millisecond)
	case n < 120: // it takes longer
		p.again(func() history.Op { return p.ExtendFinalization(p.ctx, j.id, req) })
	}
	p.finalize(j, claim.Token)
	if p.rng.Intn(10) == 0 {
		p.again(func() history.Op { return p.ReleaseFinalization(p.ctx, j.id, p.name) })
	}
	return true
}

// finalize ends the parent.
func (p *processor) finalize(j job, token uint64) {
	req := wire.Finalize{ProcessorID: p.name, ClaimToken: token, Outcome: j.shape.goal()}
	if result := j.shape.goalResult(p.name); result != "" {
		req.Result = json.RawMessage(result)
	} else {
		req.Error = goalError
	}
	op := p.again(func() history.Op { return p.Finalize(p.ctx, j.id, req) })
	if op.Outcome != history.Failed {
		return
	}
	switch code := wire.Code(op.Code); {
	case p.ctx.Err() != nil, recorder.Again(op): // nobody could do it, for long
	case code == wire.CodeTaskAlreadyClaimed, code == wire.CodeStaleClaim && token != 0, code == wire.CodeStepsUnfinished && !j.all:
	default:
		// All its steps had ended, and steps do not begin again. But a failure that
		// is followed by another attempt looks like an end for a moment.
		if code != wire.CodeStepsUnfinished {
			p.ledger.Violate("the finalization of parent %d is refused: %s", j.id, op.Code)
		}
	}
}

// repeatsMax bounds how often a call is repeated before its caller gives up.
const repeatsMax = 200

// again makes a call until its outcome is known and it is not one to be tried
// later.
func (p *processor) again(call func() history.Op) history.Op {
	for n := 0; ; n++ {
		op := call()
		if op.Outcome == history.Unknown {
			p.unknown.Add(1)
		}
		if !recorder.Again(op) || n == repeatsMax || p.pause(p.ctx, retryPause) != nil {
			return op
		}
	}
}
