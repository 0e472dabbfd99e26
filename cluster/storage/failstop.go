package storage

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// failStop ends the process at the first call into storage that fails or hangs.
//
// A failed fsync may have discarded the data: the kernel marks the pages clean, and a
// second fsync succeeds. And a disk that hangs leaves a leader whose heartbeats still hold
// back the other nodes. So nothing is retried: fatal is called once, and in production it
// does not return. If it returns, in tests, every later call gets ErrStorageFailed.
//
// One goroutine, started by newFailStop and waited for by close, watches all calls in
// progress. A call hangs when that goroutine has seen it hangingLooks times. So time in
// which the process stood still (SIGSTOP, a paused container, a suspended machine, no CPU)
// is not blamed on the disk, because it counts as one look at most.
type failStop struct {
	fatal func(error)

	stop chan struct{} // closed by close
	done chan struct{} // closed when the watcher has ended

	mu     sync.Mutex // guards the rest
	calls  map[*storageCall]struct{}
	err    error // the first failure
	closed bool
}

// storageCall is one call in progress.
type storageCall struct {
	op        string
	startedAt time.Time
	looks     int // how often the watcher has seen it
}

const (
	// looksPerSlowMax is the number of times that the watcher looks within the time that a
	// call may take.
	looksPerSlowMax = 8
	// hangingLooks is the look at which a call counts as hanging. The first may come right
	// after the call began.
	hangingLooks = looksPerSlowMax + 1
)

// newFailStop returns a failStop for which a call hangs after slowMax, and at most an
// eighth more, of the time in which this process runs.
func newFailStop(fatal func(error), slowMax time.Duration) *failStop {
	// A timer per call would cost more than the call. However long the process stood still,
	// the ticker delivers only one tick for it.
	ticker := time.NewTicker(max(slowMax/looksPerSlowMax, time.Millisecond))
	return newFailStopLooking(fatal, ticker.C)
}

// newFailStopLooking is newFailStop with a watcher that looks at each of looks.
func newFailStopLooking(fatal func(error), looks <-chan time.Time) *failStop {
	f := &failStop{
		fatal: fatal,
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
		calls: make(map[*storageCall]struct{}),
	}
	go f.runWatcher(looks)
	return f
}

// do runs fn, the call named op. Any error of fn is a failure, except those accepted by ok.
// A panic or a memory fault in fn, with which bbolt reacts to damaged pages, is one too:
// ErrCorruptLog.
func (f *failStop) do(op string, ok func(error) bool, fn func() error) error {
	call, err := f.begin(op)
	if err != nil {
		return err
	}
	err = callGuarded(op, fn)
	f.end(call)
	if err == nil || ok != nil && ok(err) {
		return err
	}
	return f.fail(err)
}

func (f *failStop) begin(op string) (*storageCall, error) {
	call := &storageCall{op: op, startedAt: time.Now()}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
		return nil, fmt.Errorf("%w: %s: after an earlier failure: %w", ErrStorageFailed, op, f.err)
	case f.closed:
		return nil, fmt.Errorf("%w: %s", ErrStorageClosed, op)
	}
	f.calls[call] = struct{}{}
	return call, nil
}

func (f *failStop) end(call *storageCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, call)
}

// fail records the first failure and ends the process with it. It returns err where fatal
// returns.
func (f *failStop) fail(err error) error {
	f.mu.Lock()
	first := f.err == nil
	if first {
		f.err = err
	}
	f.mu.Unlock()
	if first {
		f.fatal(err)
	}
	return err
}

// runWatcher looks at the calls in progress until close.
func (f *failStop) runWatcher(looks <-chan time.Time) {
	defer close(f.done)
	for {
		select {
		case <-f.stop:
			return
		case now := <-looks:
			if err := f.hangingCall(now); err != nil {
				_ = f.fail(err)
			}
		}
	}
}

// hangingCall looks at the calls in progress once. It returns an error if one of them
// hangs.
func (f *failStop) hangingCall(now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for call := range f.calls {
		call.looks++
		if call.looks >= hangingLooks {
			return fmt.Errorf("%w: %s: no answer for %s: check the disk, then start this node again",
				ErrStorageFailed, call.op, now.Sub(call.startedAt).Round(time.Millisecond))
		}
	}
	return nil
}

// close stops the watcher and refuses further calls. It reports whether this was the first
// close.
func (f *failStop) close() bool {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return false
	}
	f.closed = true
	f.mu.Unlock()
	close(f.stop)
	<-f.done
	return true
}

// callGuarded runs fn and turns a panic or a fault (a mapped file that is shorter than it
// claims) into an ErrCorruptLog.
func callGuarded(op string, fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %s: the store panicked: %v", ErrCorruptLog, op, r)
		}
	}()
	return fn()
}

// errorIs returns an ok function for do that accepts target.
func errorIs(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}
