package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claimq/claimq/client"
)

// finalizationTimeout is the time for which a processor claims the finalization. If the processor dies, another one
// can take over after that.
const finalizationTimeout = 10 * time.Second

// process waits for the steps, merges their results and ends the task, unless another processor does.
func (p *program) process(ctx context.Context, name string, w *client.Workflow) error {
	for _, id := range w.Steps {
		if _, err := p.c.Wait(ctx, id); err != nil {
			return err
		}
	}
	finalizer := client.NewFinalizationClaimer(p.c, name)
	for {
		claim, err := finalizer.ClaimTask(ctx, w.ID, finalizationTimeout)
		switch {
		case err != nil:
			return err
		case claim.Claimed:
			err := p.finalize(ctx, finalizer, name, w.ID)
			if !errors.Is(err, client.ErrStaleClaim) && !errors.Is(err, client.ErrTaskAlreadyClaimed) {
				return err
			}
			p.say("%s was too slow: its claim is over", name)
			continue
		case claim.State != client.FinalizationEvaluatingResults:
			p.say("%s: task %s is %s already", name, w.ID, claim.State)
			return nil
		}
		p.say("%s leaves it to %s", name, claim.HeldBy)
		if ended, err := p.endsWithin(ctx, w.ID, finalizationTimeout); ended || err != nil {
			return err
		}
	}
}

// finalize reads the results of the steps and ends the task with them.
func (p *program) finalize(ctx context.Context, f *client.FinalizationClaimer, name, id string) error {
	parts := map[string][]byte{}
	for step, err := range p.c.Tasks(ctx, client.Filter{ParentID: id}) {
		if err != nil {
			return err
		}
		if step.StepName != "fetch" && step.Status == client.StatusCompleted {
			parts[step.StepName] = step.Result
		}
	}
	end := client.FinalizeRequest{Outcome: client.StatusFailed, Error: fmt.Sprintf("%d of 3 looks came to something", len(parts))}
	if len(parts) == 3 {
		result, err := merge(parts)
		if err != nil {
			return err
		}
		end = client.FinalizeRequest{Outcome: client.StatusCompleted, Result: result}
	}
	done, err := f.Finalize(ctx, id, end) // with the token of its claim, so it is refused if the claim is over
	if err != nil {
		return err
	}
	p.say("%s finalized task %s: it is %s", name, id, done.Action)
	return nil
}

// endsWithin waits for the task's end, but at most d.
func (p *program) endsWithin(ctx context.Context, id string, d time.Duration) (bool, error) {
	waitCtx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, err := p.c.Wait(waitCtx, id)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}
