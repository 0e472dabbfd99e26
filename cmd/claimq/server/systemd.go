package server

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cmd/claimq/term"
)

const (
	// readyNoticeMax bounds how long the service manager waits for a node to be
	// ready: the first nodes of a cluster are not before a majority runs, and
	// whoever starts them one after the other must not wait for that.
	readyNoticeMax = 30 * time.Second
	// readyNoticePoll is how often a node is asked whether it is ready.
	readyNoticePoll = 100 * time.Millisecond
)

// notices tell the service manager that started the server, as sd_notify(3)
// does, how it gets on. Where none has asked for it, they do nothing.
type notices struct {
	socket string // NOTIFY_SOCKET; "": nobody listens
	logger hclog.Logger
	late   *time.Timer
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	ready bool // it has been said
}

// newNotices begins to count the time after which the node counts as started.
// The caller stops them.
func newNotices(a *term.App, logger hclog.Logger) *notices {
	n := &notices{socket: a.Getenv("NOTIFY_SOCKET"), logger: logger, cancel: func() {}}
	n.late = time.AfterFunc(readyNoticeMax, func() { n.started("not ready yet: GET /readyz says why", false) })
	return n
}

// await says that the server is ready once ready returns nil.
func (n *notices) await(ready func() error) {
	if n.socket == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.wait.Go(func() {
		tick := time.NewTicker(readyNoticePoll)
		defer tick.Stop()
		for ready() != nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		n.started("ready", true)
	})
}

// started says once that the server runs. That it is ready then goes on its own; that it
// is not comes too late.
func (n *notices) started(status string, ready bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ready && !ready {
		return
	}
	state := "STATUS=" + status
	if !n.ready {
		state = "READY=1\n" + state
	}
	n.ready = true
	n.send(state)
}

// reloading says that what reload does is under way, and then that it is done.
func (n *notices) reloading(reload func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ready { // else it would count as started
		reload()
		return
	}
	n.send("RELOADING=1")
	reload()
	n.send("READY=1")
}

// stopping says that the server stops, and ends the waiting to be ready.
func (n *notices) stopping() {
	n.stop()
	n.send("STOPPING=1")
}

// stop ends the waiting to be ready; it is safe twice.
func (n *notices) stop() {
	n.late.Stop()
	n.cancel()
	n.wait.Wait()
}

// send sends a datagram with lines of NAME=VALUE. That nobody hears it is no
// reason to stop.
func (n *notices) send(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		n.logger.Warn("cannot reach the service manager", "NOTIFY_SOCKET", n.socket, "error", err)
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		n.logger.Warn("cannot tell the service manager", "NOTIFY_SOCKET", n.socket, "error", err)
	}
}
