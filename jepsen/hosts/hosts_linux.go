package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// hostCountMax bounds the hosts beside that of the callers.
	hostCountMax = 9
	// clientsAddr is the last byte of the callers' address.
	clientsAddr = 250
	// mtu is the length of the longest packet, as on an Ethernet.
	mtu = 1500
	// sendQueueLen is how many packets may wait in a host for the switch.
	sendQueueLen = 5000
	// commandTimeout bounds each run of ip, nft or tc.
	commandTimeout = 10 * time.Second
)

// Hosts is a number of hosts and the network between them. It is safe for
// concurrent use.
type Hosts struct {
	hub    *namespace
	hosts  []*Host // by number; the first is that of the callers
	sw     *packetSwitch
	rules  *rules
	routed map[Link]bool // links that lead through the switch; guarded by rules.mu

	mu     sync.Mutex // guards what follows
	limits map[int][]int64
	closed bool
}

// Host is one host.
type Host struct {
	number int
	addr   string
	ns     *namespace
}

// New makes hosts for nodes 1 to nodes, and one for the callers. It needs root
// and the programs ip, tc and nft. seed is of what the switch does to packets.
func New(ctx context.Context, nodes int, seed int64) (*Hosts, error) {
	if nodes < 1 || nodes > hostCountMax {
		return nil, fmt.Errorf("a network of %d hosts: 1 to %d are possible", nodes, hostCountMax)
	}
	h := &Hosts{routed: map[Link]bool{}, limits: map[int][]int64{}}
	h.rules = newRules(h.apply)
	if err := h.build(ctx, nodes, seed); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// build makes the hosts and connects them. What it made is there to be closed
// when it fails.
func (h *Hosts) build(ctx context.Context, nodes int, seed int64) (err error) {
	if h.hub, err = newNamespace(); err != nil {
		return err
	}
	for number := range nodes + 1 {
		ns, err := newNamespace()
		if err != nil {
			return err
		}
		h.hosts = append(h.hosts, &Host{number: number, addr: address(number), ns: ns})
	}
	return h.cable(ctx, seed)
}

// address returns the IP address of the host.
func address(number int) string {
	if number == Clients {
		number = clientsAddr
	}
	return fmt.Sprintf("10.99.0.%d", number)
}

// mac returns the hardware address of the host.
func mac(number int) string { return fmt.Sprintf("02:99:00:00:00:%02x", number) }

// cable connects the hosts with the hub and the switch.
func (h *Hosts) cable(ctx context.Context, seed int64) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var batch strings.Builder
	var files []*os.File
	fmt.Fprintf(&batch, "link set lo up\nlink add br0 type bridge\nlink set br0 up\n")
	for i, host := range h.hosts {
		fmt.Fprintf(&batch, "link add p%d type veth peer name eth0 address %s netns /proc/self/fd/%d\n", host.number, mac(host.number), 3+i)
		fmt.Fprintf(&batch, "link set p%d mtu %d master br0 up\n", host.number, mtu)
		files = append(files, host.ns.file)
	}
	if err := h.hub.do(quiet); err != nil {
		return fmt.Errorf("make the hub: %w", err)
	}
	if err := h.hub.command(ctx, batch.String(), files, "ip", "-batch", "-"); err != nil {
		return fmt.Errorf("make the hub: %w", err)
	}
	var tuns []*os.File
	for _, host := range h.hosts {
		tun, err := host.plug(ctx, len(h.hosts))
		if err != nil {
			return errors.Join(fmt.Errorf("connect host %d: %w", host.number, err), closeAll(tuns))
		}
		tuns = append(tuns, tun)
	}
	h.sw = startSwitch(tuns, seed)
	return nil
}

// plug sets up the host's side of its cables.
func (host *Host) plug(ctx context.Context, count int) (tun *os.File, err error) {
	if err := host.ns.do(quiet); err != nil {
		return nil, err
	}
	err = host.ns.do(func() error {
		tun, err = openTun(switchDevice)
		return err
	})
	if err != nil {
		return nil, err
	}
	var batch strings.Builder
	fmt.Fprintf(&batch, "link set lo up\naddr add %s/24 dev eth0\nlink set eth0 mtu %d up\nlink set %s mtu %d txqueuelen %d up\n", host.addr, mtu, switchDevice, mtu, sendQueueLen)
	for other := range count {
		// Nobody asks for hardware addresses: else a link that is cut one way would
		// soon be cut both ways.
		if other != host.number {
			fmt.Fprintf(&batch, "neigh replace %s lladdr %s dev eth0 nud permanent\n", address(other), mac(other))
		}
	}
	if err := host.ns.command(ctx, batch.String(), nil, "ip", "-batch", "-"); err != nil {
		return nil, errors.Join(err, tun.Close())
	}
	return tun, nil
}

// quiet keeps the namespace of the calling thread from talking IPv6 and from
// dropping what comes in by another way than the answer takes.
func quiet() error {
	for name, value := range map[string]string{
		"ipv4/conf/all/rp_filter":         "0",
		"ipv4/conf/default/rp_filter":     "0",
		"ipv6/conf/all/disable_ipv6":      "1",
		"ipv6/conf/default/addr_gen_mode": "1",
	} {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Host returns the host of that number: 1 to the count of nodes, or Clients.
func (h *Hosts) Host(number int) *Host { return h.hosts[number] }

// Addr returns the host's IP address.
func (host *Host) Addr() string { return host.addr }

// Start starts the command on the host, as cmd.Start does. It must have ended
// before the hosts are closed, or they live on until it does.
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

// Listen listens on the host.
func (host *Host) Listen(ctx context.Context, network, addr string) (l net.Listener, err error) {
	err = host.ns.visit(func() error {
		var lc net.ListenConfig
		l, err = lc.Listen(ctx, network, addr)
		return err
	})
	return l, err
}

// Dial connects as a caller: from the host Clients.
func (h *Hosts) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return h.hosts[Clients].Dial(ctx, network, addr)
}

func (h *Hosts) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// Close takes the network down. Its nodes have ended before. It is safe twice.
func (h *Hosts) Close() error {
	h.rules.mu.Lock() // until what is being changed is changed
	defer h.rules.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	var err error
	if h.sw != nil {
		err = h.sw.close()
	}
	for _, host := range h.hosts {
		host.ns.close()
	}
	if h.hub != nil {
		h.hub.close()
	}
	return err
}
