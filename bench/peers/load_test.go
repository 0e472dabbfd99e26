package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// memory is a queue in memory. deliver decides what becomes of each task.
type memory struct {
	deliver func(task []byte) [][]byte
	submit  error
	closed  bool
}

func (q *memory) prepare(_ context.Context, n int, handle func([]byte), of *load) error {
	tasks := make(chan []byte, n)
	var settled atomic.Int64
	of.settled, of.ends = settled.Load, append(of.ends, func() { q.closed = true })
	for range n {
		of.submit = append(of.submit, func(_ context.Context, task []byte) error {
			tasks <- task
			return q.submit
		})
	}
	of.consume = func(ctx context.Context) error {
		for {
			select {
			case task := <-tasks:
				for _, task := range q.deliver(task) {
					handle(task)
				}
				settled.Add(1)
			case <-ctx.Done():
				return nil
			}
		}
	}
	return nil
}

// A lost, repeated or foreign task ends the run, and so does an error.
func TestMeasure(t *testing.T) {
	t.Parallel()
	once := func(task []byte) [][]byte { return [][]byte{task} }
	first := func(all func(task []byte) [][]byte) func(task []byte) [][]byte {
		return func(task []byte) [][]byte {
			if strings.HasPrefix(string(task), `"0000000000000000x`) {
				return all(task)
			}
			return once(task)
		}
	}
	for name, c := range map[string]struct {
		queue memory
		want  string
	}{
		"each once":  {memory{deliver: once}, ""},
		"lost":       {memory{deliver: first(func([]byte) [][]byte { return nil })}, "0 of them more than once, and 1 not; 0 were none of these"},
		"twice":      {memory{deliver: first(func(task []byte) [][]byte { return [][]byte{task, task} })}, "1 of them more than once, and 0 not; 0 were"},
		"cut":        {memory{deliver: first(func(task []byte) [][]byte { return [][]byte{task[:17]} })}, "and 1 not; 1 were none"},
		"not ours":   {memory{deliver: first(func(task []byte) [][]byte { return [][]byte{task, slices.Repeat([]byte("1"), taskSize)} })}, "and 0 not; 1 were none"},
		"not a task": {memory{deliver: first(func(task []byte) [][]byte { return [][]byte{task, slices.Repeat([]byte("z"), taskSize)} })}, "and 0 not; 1 were none"},
		"refused":    {memory{deliver: once, submit: errors.New("no")}, "submit: no ("},
	} {
		rate, err := measure(t.Context(), c.queue.prepare, 3, 10*time.Millisecond)
		if c.want == "" && (err != nil || rate <= 0) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v tasks/s, %v; want %q", name, rate, err, c.want)
		}
		if !c.queue.closed {
			t.Errorf("%s: the load was not closed", name)
		}
	}
}

// Tasks have the same size, are JSON strings, and differ from each other.
func TestLedger_next(t *testing.T) {
	t.Parallel()
	var l ledger
	one, two := string(l.next()), string(l.next())
	want := `"0000000000000001` + strings.Repeat("x", taskSize-18) + `"`
	if two != want || one == two || len(one) != taskSize {
		t.Errorf("%s and %s, want %s", one, two, want)
	}
}

// A consumer that fails ends the others.
func TestTogether(t *testing.T) {
	t.Parallel()
	left := 2
	var of load
	of.together([]loop{
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		func(context.Context) error {
			if left--; left < 0 {
				return errors.New("the end")
			}
			return nil
		},
	})
	if err := of.consume(t.Context()); err == nil || err.Error() != "the end" || of.settled() != 2 {
		t.Errorf("%v, %d settled", err, of.settled())
	}
}
