package faults

import (
	"context"
	"errors"
	"slices"
	"time"
)

// undoTimeout bounds what is undone of a fault that could not be injected as a
// whole.
const undoTimeout = 30 * time.Second

// undo collects what a fault has to undo. The zero value is empty.
type undo struct {
	steps []func(context.Context) error
}

func (u *undo) add(step func(context.Context) error) { u.steps = append(u.steps, step) }

// all undoes all, the last first, whatever fails.
func (u *undo) all(ctx context.Context) error {
	var errs []error
	for _, step := range slices.Backward(u.steps) {
		errs = append(errs, step(ctx))
	}
	return errors.Join(errs...)
}

// after undoes all because of err, which it returns together with what fails
// now. ctx may have ended.
func (u *undo) after(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	return errors.Join(err, u.all(ctx))
}
