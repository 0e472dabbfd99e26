package parents

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// produce submits parents, several at a time, and cancels some of them.
func (l *Load) produce(i int) {
	c, rng := l.caller(i), l.rng(1000+i)
	for l.ctx.Err() == nil {
		first, count := l.take(1 + rng.Intn(submitMax))
		if count == 0 {
			return
		}
		var shapes []Shape
		for n := range count {
			shapes = append(shapes, NewShape(l.cfg.Seed, first+n, l.cfg.Steps))
		}
		for !l.may(first + count) {
			if l.pause(l.ctx, retryPause) != nil {
				return
			}
		}
		ids, err := l.submit(c, shapes)
		if err != nil {
			l.oddly(err)
			return
		}
		for n := range shapes {
			if shapes[n].Cancelled && l.pause(l.ctx, time.Duration(rng.Int63n(int64(20*time.Millisecond)))) == nil {
				l.cancel(c, ids[n])
			}
		}
		if rate := l.rate.Load(); rate > 0 {
			_ = l.pause(l.ctx, time.Duration(l.cfg.Producers*count)*time.Second/time.Duration(rate)) // the loop looks
		}
	}
}

// take takes the next parents: fewer at the end, none if there are no more, and
// no more than a tenth of a second's.
func (l *Load) take(most int) (first, count int) {
	if rate := int(l.rate.Load()); rate > 0 {
		most = min(most, rate/10+1)
	}
	end := int(l.taken.Add(int64(most)))
	return end - most, max(most-max(end-l.cfg.Parents, 0), 0)
}

// may reports whether the parents up to n may be submitted now.
func (l *Load) may(n int) bool {
	known, ended, _ := l.ledger.counts()
	return int64(n) <= l.allowed.Load()+submitMax && known-ended < openMax
}

// submit submits the parents in one request, until that is acknowledged, and
// registers them.
func (l *Load) submit(c *caller, shapes []Shape) ([]uint64, error) {
	var req wire.SubmitMany
	for i := range shapes {
		req.Tasks = append(req.Tasks, shapes[i].task(l.cfg.Seed))
	}
	var answer wire.Answer
	err := c.again(l.ctx, http.MethodPost, "/api/tasks", req, &answer)
	var no *refused
	switch {
	case errors.As(err, &no):
		return nil, fmt.Errorf("%w: a submit is refused: %w", errOdd, err)
	case err != nil:
		return nil, err
	case len(answer.Results) != len(shapes) || answer.Failed > 0:
		return nil, fmt.Errorf("%w: %d parents submitted, %d results, %d refused: %+v", errOdd, len(shapes), len(answer.Results), answer.Failed, answer.Results)
	}
	ids := make([]uint64, len(shapes))
	for i := range shapes {
		ids[i] = answer.Results[i].ID
		l.ledger.register(shapes[i], ids[i])
	}
	l.acked.Add(int64(len(shapes)))
	return ids, nil
}

// cancel asks for the end of the parent.
func (l *Load) cancel(c *caller, id uint64) {
	var answer wire.Answer
	err := c.again(l.ctx, http.MethodPost, fmt.Sprintf("/api/tasks/%d/cancel", id), struct{}{}, &answer)
	var no *refused
	switch {
	case err == nil:
		l.ledger.cancelledNow(id)
	case errors.As(err, &no) && (no.code == wire.CodeTaskCompleted || no.code == wire.CodeTaskFailed): // too late
	case errors.As(err, &no):
		l.ledger.Violate("the cancel of parent %d is refused: %v", id, err)
	default:
		l.oddly(err)
	}
}
