package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// queue connects n producers and n consumers to a running system, with one queue of tasks. handle is called with each
// task. It fills in the load even if it fails.
type queue func(ctx context.Context, n int, handle func(task []byte), of *load) error

// load holds the producers and consumers of a queue.
type load struct {
	// submit has one function per producer. It submits a task and returns when it is confirmed.
	submit []func(ctx context.Context, task []byte) error
	// consume makes the consumers take tasks, one at a time each, handle and acknowledge them, until ctx ends. Then
	// it returns nil.
	consume func(ctx context.Context) error
	// settled returns how many tasks have been acknowledged.
	settled func() int64
	// ends release the connections.
	ends []func()
}

func (l *load) close() {
	for _, end := range l.ends {
		end()
	}
}

const (
	taskSize = 256
	// settledWait is the pause between two checks whether all tasks are settled.
	settledWait = time.Millisecond
	// settledMax bounds the time for that after the last submit.
	settledMax = 2 * time.Minute
)

// measure has n producers submit tasks for the given time while n consumers take them. It returns the number of tasks
// per second.
func measure(ctx context.Context, q queue, n int, during time.Duration) (float64, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	l := &ledger{}
	var of load
	defer of.close()
	if err := q(ctx, n, l.handled, &of); err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}

	start := time.Now()
	var working, submitting sync.WaitGroup
	workCtx, stop := context.WithCancel(ctx)
	defer stop()
	working.Go(func() {
		if err := of.consume(workCtx); err != nil {
			fail(fmt.Errorf("consume: %w", err))
		}
	})
	for _, submit := range of.submit {
		submitting.Go(func() {
			for time.Since(start) < during && ctx.Err() == nil {
				if err := submit(ctx, l.next()); err != nil {
					fail(fmt.Errorf("submit: %w", err))
				}
			}
		})
	}
	submitting.Wait()
	look := time.NewTicker(settledWait)
	defer look.Stop()
	end := time.AfterFunc(settledMax, func() { fail(errors.New("not all tasks were settled")) })
	defer end.Stop()
	for of.settled() < l.submitted() && ctx.Err() == nil {
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
	took := time.Since(start)
	stop()
	working.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, fmt.Errorf("%w (%s)", err, l)
	}
	return float64(l.submitted()) / took.Seconds(), l.check()
}

// ledger numbers the tasks and records which have been handled. Concurrent calls are safe.
type ledger struct {
	numbered atomic.Int64

	mu     sync.Mutex
	times  []uint8 // how often each was handled; guarded by mu
	others int     // foreign tasks; guarded by mu
}

// next returns a new task, which is its number in a JSON string.
func (l *ledger) next() []byte {
	number := l.numbered.Add(1) - 1
	task := fmt.Appendf(make([]byte, 0, taskSize), `"%016x`, number)
	return append(task, strings.Repeat("x", taskSize-len(task)-1)+`"`...)
}

// numberOf returns the number of a task; ok is false if it is not one.
func numberOf(task []byte) (number int64, ok bool) {
	if len(task) != taskSize {
		return 0, false
	}
	number, err := strconv.ParseInt(string(task[1:17]), 16, 64)
	return number, err == nil && number >= 0
}

// submitted returns how many tasks there are.
func (l *ledger) submitted() int64 { return l.numbered.Load() }

// handled records the task.
func (l *ledger) handled(task []byte) {
	number, ok := numberOf(task)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok || number >= l.submitted() {
		l.others++
		return
	}
	for int64(len(l.times)) <= number {
		l.times = append(l.times, 0)
	}
	l.times[number]++
}

// counts returns how many tasks were handled, handled more than once, and never handled, and how many foreign tasks
// came.
func (l *ledger) counts() (handled, doubled, lost, others int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.times {
		switch {
		case times > 1:
			doubled++
			handled++
		case times == 1:
			handled++
		}
	}
	return handled, doubled, int(l.submitted()) - handled, l.others
}

func (l *ledger) String() string {
	handled, doubled, lost, others := l.counts()
	return fmt.Sprintf("of %d tasks %d were handled, %d of them more than once, and %d not; %d were none of these", l.submitted(), handled, doubled, lost, others)
}

// check returns an error unless each task was handled once.
func (l *ledger) check() error {
	if _, doubled, lost, others := l.counts(); doubled > 0 || lost > 0 || others > 0 {
		return errors.New(l.String())
	}
	return nil
}

// loop is one consumer's step: it takes a task, has it handled and acknowledges it.
type loop func(ctx context.Context) error

// together makes the load's consumers from loops.
func (l *load) together(loops []loop) {
	var count atomic.Int64
	l.settled = count.Load
	l.consume = func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		failed := make([]error, len(loops))
		var wg sync.WaitGroup
		for i, next := range loops {
			wg.Go(func() {
				defer stop() // one that failed stops the others
				for {
					err := next(ctx)
					if ctx.Err() != nil {
						return
					}
					if err != nil {
						failed[i] = err
						return
					}
					count.Add(1)
				}
			})
		}
		wg.Wait()
		return errors.Join(failed...)
	}
}
