package server

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/api/trail"
)

// hangups receives SIGHUP from its creation on, because a process that does not listen would die of it.
type hangups struct{ signals chan os.Signal }

func newHangups() hangups {
	h := hangups{signals: make(chan os.Signal, 1)}
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

// stop stops listening. It may be called twice.
func (h hangups) stop() { signal.Stop(h.signals) }

// call calls f at every SIGHUP and whenever also ticks, until stop is called, which waits for the end.
func (h hangups) call(f func(), also <-chan time.Time) (stop func()) {
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-h.signals:
			case <-also:
			case <-ended:
				return
			}
			f()
		}
	})
	return func() {
		h.stop()
		close(ended)
		wait.Wait()
	}
}

// watchFiles calls looks with the time at the interval and on SIGHUP, until stop is called, which waits for the end.
func watchFiles(interval time.Duration, looks ...func(now time.Time)) (stop func()) {
	tick := time.NewTicker(interval)
	stopListening := newHangups().call(func() {
		for _, look := range looks {
			look(time.Now())
		}
	}, tick.C)
	return func() {
		stopListening()
		tick.Stop()
	}
}

// startAudit writes the node's trail to the file at path until stop is called; SIGHUP closes and reopens the file.
// Without a path it does nothing and log is nil.
func startAudit(path string, node api.Node, logger hclog.Logger) (log *trail.Audit, stop func(), err error) {
	if path == "" {
		return nil, func() {}, nil
	}
	log, err = trail.OpenAudit(trail.AuditConfig{Path: path, Node: node, Logger: logger.Named("audit")})
	if err != nil {
		return nil, nil, err
	}
	stopListening := newHangups().call(log.Reopen, nil)
	return log, func() {
		go stopListening() // it waits for a SIGHUP under way, and so for the disk
		log.Close()
	}, nil
}
