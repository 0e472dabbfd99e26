//go:build !linux

package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
)

// Hosts is a number of hosts and the network between them: there are none but on
// Linux.
type Hosts struct{}

// Host is one host.
type Host struct{}

// New refuses: it needs Linux's network namespaces.
func New(int, int64) (*Hosts, error) {
	return nil, fmt.Errorf("hosts of the nodes' own: %w", errors.ErrUnsupported)
}

// Host returns the host of that number.
func (h *Hosts) Host(int) *Host { return nil }

// Shape makes links worse.
func (h *Hosts) Shape(map[Link]Quality) (remove func() error, err error) {
	return nil, errors.ErrUnsupported
}

// Dial connects as a caller.
func (h *Hosts) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}

// Close takes the network down.
func (h *Hosts) Close() error { return nil }

// Limit bounds what the host sends.
func (h *Hosts) Limit(int, int64) (remove func() error, err error) {
	return nil, errors.ErrUnsupported
}

// Addr is the host's IP address.
func (h *Host) Addr() string { return "" }

// Start starts the command on the host.
func (h *Host) Start(*exec.Cmd) error { return errors.ErrUnsupported }
