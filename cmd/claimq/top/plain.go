package top

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// Print writes one frame, all rows of it: of a second look an interval after first,
// so that there are rates. columns 0: lines of any length.
func Print(ctx context.Context, w io.Writer, source *Source, first Look, columns int, o Options) error {
	model := Model{Filter: o.Filter}
	model.Add(first)
	view, ok := next(ctx, &model, source, o.Interval)
	if !ok {
		return nil
	}
	var b strings.Builder
	for _, line := range Draw(view, Screen{Columns: columns, Interval: o.Interval}) {
		b.WriteString(line.Text() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Stream writes a line of JSON, a View, for each look after first, an interval
// apart, until ctx ends; only one if once is true.
func Stream(ctx context.Context, w io.Writer, source *Source, first Look, once bool, o Options) error {
	model := Model{Filter: o.Filter}
	model.Add(first)
	for {
		view, ok := next(ctx, &model, source, o.Interval)
		if !ok {
			return nil
		}
		if err := term.ShowJSON(w, view); err != nil || once {
			return err
		}
	}
}

// next waits until it is time, an interval after the last look began, and looks. ok is false if ctx has ended.
func next(ctx context.Context, model *Model, source *Source, interval time.Duration) (view *View, ok bool) {
	timer := time.NewTimer(time.Until(model.view.At.Add(source.Interval(interval))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, false
	}
	look := source.Look(ctx)
	return model.Add(look), ctx.Err() == nil
}
