package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	workerConcurrency    = 10 // default of WorkerConfig.Concurrency
	workerConcurrencyMax = 10_000
	stopWaitDefault      = 30 * time.Second
	// The bounds of a lease, as the server has them.
	leaseMin = 100 * time.Millisecond
	leaseMax = 24 * time.Hour
	// nameBytesMax bounds a worker's id and a task type.
	nameBytesMax = 128
)

// NoStopWait in WorkerConfig.StopWait is no wait.
const NoStopWait = time.Duration(-1)

// WorkerConfig says how a Worker works. The zero value is good.
type WorkerConfig struct {
	// ID is the worker's name: 1 to 128 of A-Z a-z 0-9 _ -. No two workers that
	// run at the same time should have the same. "": the host's name, the process's
	// number and something random.
	ID string
	// Concurrency is how many handlers run at a time, up to 10,000; the worker
	// never holds more tasks than that. 0 = 10.
	Concurrency int
	// Lease is how long the claims last unless they are extended, 100 ms to 24 h:
	// so long nobody else gets the task of a worker that died. The worker extends
	// at a third of it. 0: the task's own, else its type's, else the server's
	// default, 30 s.
	Lease time.Duration
	// Timeout is how long a handler may take: then its context ends with
	// context.DeadlineExceeded, and the attempt fails unless it returns nil. A
	// handler that goes on for StopWait after that keeps its slot, but its claim is
	// not extended any more. 0: no limit. WithTimeout is for one type.
	Timeout time.Duration
	// StopWait is for how long Run waits, when its context has ended, before it
	// ends the contexts of the handlers. 0 = 30 s; NoStopWait: it ends them at once.
	StopWait time.Duration
	// Retry is how long a task waits after an attempt, the Task.Attempts-th, has failed
	// with err, where neither the task nor its type has a backoff, and err is not
	// RetryAfter; below 0 is 0. Whether the type has one is asked of the server at most
	// once a minute. It must be safe for concurrent use. nil: the server's default says it,
	// or if it has none 1 s, doubled for each attempt up to 10 min, give or take 20 %.
	Retry func(task *Task, err error) time.Duration
	// OnError is called with what goes wrong, and neither a handler nor the error of Run
	// tells: all that Logger hears at Warn and Error. Of a task, those are a *PanicError
	// and what is ErrLeaseLost or an error of its settling call: the claim was lost, and
	// what the handler did may not count; without a task, nil, it is a claim that failed.
	// ctx has the values of Run's, and the task's trace context. It is called in the
	// goroutine that is to go on, so it should not take long; it must be safe for
	// concurrent use. nil: nobody is called.
	OnError func(ctx context.Context, task *Task, err error)
	// Logger hears at level Info when the worker begins, ends, and is answered
	// again; at Warn what goes wrong; at Error of panics. nil: what is at Warn and above
	// goes to slog.Default; slog.New(slog.DiscardHandler) hears nothing.
	Logger *slog.Logger
}

// withDefaults checks the configuration and fills in its defaults.
func (cfg WorkerConfig) withDefaults() (WorkerConfig, error) {
	if cfg.ID == "" {
		host, _ := os.Hostname()
		cfg.ID = madeUpID(host, os.Getpid())
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = workerConcurrency
	}
	switch cfg.StopWait {
	case 0:
		cfg.StopWait = stopWaitDefault
	case NoStopWait:
		cfg.StopWait = 0
	}
	if cfg.Retry == nil {
		cfg.Retry = defaultRetry
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(warnings{slog.Default().Handler()})
	}
	switch {
	case !isName(cfg.ID, "_-"):
		return cfg, fmt.Errorf("%w: %q is not 1 to %d of A-Z a-z 0-9 _ -", ErrInvalidWorkerID, cfg.ID, nameBytesMax)
	case cfg.Concurrency < 0 || cfg.Concurrency > workerConcurrencyMax:
		return cfg, fmt.Errorf("concurrency is %d, it must be 1 to %d", cfg.Concurrency, workerConcurrencyMax)
	case cfg.Lease != 0 && (cfg.Lease < leaseMin || cfg.Lease > leaseMax):
		return cfg, fmt.Errorf("lease is %v, it must be %v to %v", cfg.Lease, leaseMin, leaseMax)
	case cfg.Timeout < 0:
		return cfg, fmt.Errorf("timeout is %v, it must not be negative", cfg.Timeout)
	case cfg.StopWait < 0:
		return cfg, fmt.Errorf("stop wait is %v, it must not be negative, but for NoStopWait", cfg.StopWait)
	}
	return cfg, nil
}

// isName reports whether s is 1 to 128 ASCII letters, digits and characters of
// others.
func isName(s, others string) bool {
	if len(s) == 0 || len(s) > nameBytesMax {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i], others) {
			return false
		}
	}
	return true
}

func isNameByte(b byte, others string) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte(others, b) >= 0
}

// madeUpID is host-pid-random, made to fit what the server takes.
func madeUpID(host string, pid int) string {
	const randomLen = 10
	rest := "-" + strconv.Itoa(pid) + "-" + strings.ToLower(rand.Text()[:randomLen])
	clean := []byte(host)
	for i, b := range clean {
		if !isNameByte(b, "_-") {
			clean[i] = '-'
		}
	}
	if len(clean) == 0 {
		clean = []byte("worker")
	}
	return string(clean[:min(len(clean), nameBytesMax-len(rest))]) + rest
}
