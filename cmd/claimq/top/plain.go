package top

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// Print writes one frame with all its rows. It shows a second look, an interval after first, so that there are rates.
// With columns 0 the lines have any length.
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

// Stream writes a View as a line of JSON for each look after first, one per interval, until ctx ends. With once it
// writes only one.
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

// next looks again, an interval after the last look began. ok is false if ctx has ended.
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
