package hosts

import (
	"context"
	"errors"
	"net"
	"os/exec"
)

var errNotYet = errors.New("hosts are not there yet")

// Hosts is a number of hosts and the network between them.
type Hosts struct{}

// New makes hosts for nodes 1 to nodes, and one for the callers.
func New(ctx context.Context, nodes int, seed int64) (*Hosts, error) { return nil, errNotYet }

// Host returns the host of that number.
func (h *Hosts) Host(number int) *Host { return nil }

// Dial connects from the callers' host.
func (h *Hosts) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return nil, errNotYet
}

// Shape implements Network.
func (h *Hosts) Shape(links map[Link]Quality) (remove func() error, err error) {
	return nil, errNotYet
}

// Close implements Network.
func (h *Hosts) Close() error { return nil }

// Host is one host.
type Host struct{ addr string }

// Addr returns the host's IP address.
func (h *Host) Addr() string { return h.addr }

// Start starts a command on the host.
func (h *Host) Start(cmd *exec.Cmd) error { return errNotYet }
