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
	// readyNoticeMax bounds how long the service manager waits for a node to become ready. The first nodes of a
	// cluster become ready only when a majority runs, and starting them one after the other must not wait for that.
	readyNoticeMax = 30 * time.Second
	// readyNoticePoll is the interval at which a node is asked whether it is ready.
	readyNoticePoll = 100 * time.Millisecond
)

// notices tell the service manager that started the server about its state, as sd_notify(3) does. Without a service
// manager they do nothing.
type notices struct {
	socket string // NOTIFY_SOCKET; "": there is no listener
	logger hclog.Logger
	late   *time.Timer
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	ready bool // that was reported
}

// newNotices starts the timer after which the node counts as started. The caller stops it.
func newNotices(a *term.App, logger hclog.Logger) *notices {
	n := &notices{socket: a.Getenv("NOTIFY_SOCKET"), logger: logger, cancel: func() {}}
	n.late = time.AfterFunc(readyNoticeMax, func() { n.started("not ready yet: GET /readyz says why", false) })
	return n
}

// await reports that the server is ready once ready returns nil.
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

// started reports once that the server runs. If it already reported ready, a later report that it is not is ignored.
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

// reloading reports that reload is running, and then that it has finished.
func (n *notices) reloading(reload func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ready { // otherwise it would count as started
		reload()
		return
	}
	n.send("RELOADING=1")
	reload()
	n.send("READY=1")
}

// stopping reports that the server stops, and no longer waits until it is ready.
func (n *notices) stopping() {
	n.stop()
	n.send("STOPPING=1")
}

// stop no longer waits until the server is ready. It may be called twice.
func (n *notices) stop() {
	n.late.Stop()
	n.cancel()
	n.wait.Wait()
}

// send sends a datagram with lines of NAME=VALUE. Errors are ignored, because a missing listener is no reason to
// stop.
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
