package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
)

const (
	// hostCountMax bounds the hosts, not counting the callers'.
	hostCountMax = 9
	// clientsAddr is the last byte of the callers' address.
	clientsAddr = 250
)

// Hosts is a group of hosts and the network between them. It is safe for concurrent use.
type Hosts struct {
	hosts []*Host // by number; the first is the callers'
	sw    *packetSwitch
	close func() error // once
}

// Host is one host.
type Host struct {
	addr string
	ns   *namespace
}

// New makes hosts for nodes 1 to nodes, and one for the callers. It needs root. seed
// determines what the network does to packets.
func New(nodes int, seed int64) (*Hosts, error) {
	if nodes < 1 || nodes > hostCountMax {
		return nil, fmt.Errorf("a network of %d hosts: 1 to %d are possible", nodes, hostCountMax)
	}
	h := &Hosts{}
	var cables []*os.File
	var err error
	for number := 0; number <= nodes && err == nil; number++ {
		host, cable, errHost := newHost(number)
		if err = errHost; err == nil {
			h.hosts, cables = append(h.hosts, host), append(cables, cable)
		}
	}
	h.sw = startSwitch(cables, seed)
	h.close = sync.OnceValue(func() error {
		err := h.sw.close()
		for _, host := range h.hosts {
			host.ns.close()
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// newHost makes a host, and the outer end of its cable.
func newHost(number int) (host *Host, cable *os.File, err error) {
	host = &Host{addr: address(number)}
	if host.ns, err = newNamespace(); err != nil {
		return nil, nil, err
	}
	err = host.ns.do(func() (err error) { cable, err = plug(host.addr); return err })
	if err != nil {
		host.ns.close()
		return nil, nil, fmt.Errorf("connect host %d: %w", number, err)
	}
	return host, cable, nil
}

// address returns the IP address of the host.
func address(number int) string {
	if number == Clients {
		number = clientsAddr
	}
	return fmt.Sprintf("10.99.0.%d", number)
}

// Host returns the host with that number: 1 to the count of nodes, or Clients.
func (h *Hosts) Host(number int) *Host { return h.hosts[number] }

// Addr returns the host's IP address.
func (host *Host) Addr() string { return host.addr }

// Start starts the command on the host, like cmd.Start. It should end before the hosts are
// closed, otherwise they live on until it does.
func (host *Host) Start(cmd *exec.Cmd) error { return host.ns.do(cmd.Start) }

// Dial connects from the host.
func (host *Host) Dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	err = host.ns.visit(func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// Dial connects like a caller, from the host Clients.
func (h *Hosts) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return h.hosts[Clients].Dial(ctx, network, addr)
}

// Shape makes the links worse until remove is called. Calls combine: one cut is enough, and
// delays add up. Other links do not change. It fails, and changes nothing, if the
// network does not support the qualities. remove may be called twice.
func (h *Hosts) Shape(links map[Link]Quality) (remove func() error, err error) {
	for link, q := range links {
		if link.From == link.To || !h.has(link.From) || !h.has(link.To) && link.To != Everybody {
			return nil, fmt.Errorf("link %d to %d: there is none", link.From, link.To)
		}
		if (link.To == Everybody) != (q.Limit != 0) {
			return nil, fmt.Errorf("link %d to %d, with a limit of %d: the links to everybody have one, and no others", link.From, link.To, q.Limit)
		}
		if err := q.validate(); err != nil {
			return nil, fmt.Errorf("link %d to %d: %w", link.From, link.To, err)
		}
	}
	return h.sw.add(links)
}

func (h *Hosts) has(number int) bool { return number >= 0 && number < len(h.hosts) }

// Close takes the network down. All nodes must have ended. It may be called twice.
func (h *Hosts) Close() error { return h.close() }
