package hosts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Shape makes the links worse until remove is called, together with all other
// calls: one cut cuts, delays add up. Links that are not named stay as they
// are. It fails, and changes nothing, if the network cannot do what is asked.
// remove is safe twice.
func (h *Hosts) Shape(links map[Link]Quality) (remove func() error, err error) {
	for link := range links {
		if link.From == link.To || !h.has(link.From) || !h.has(link.To) {
			return nil, fmt.Errorf("link %d to %d: there is none", link.From, link.To)
		}
	}
	return h.rules.add(links)
}

func (h *Hosts) has(number int) bool { return number >= 0 && number < len(h.hosts) }

// apply makes the network what the qualities say: links whose packets are kept
// lead through the switch, all others through the hub. Cuts and losses hold for
// both.
func (h *Hosts) apply(links map[Link]Quality) error {
	if h.isClosed() {
		return errClosed
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	h.sw.set(links)
	if err := h.hub.command(ctx, hubRules(links), nil, "nft", "-f", "-"); err != nil {
		return fmt.Errorf("set the hub's rules: %w", err)
	}
	for _, host := range h.hosts {
		if err := h.route(ctx, host, links); err != nil {
			return fmt.Errorf("set the routes of host %d: %w", host.number, err)
		}
	}
	return nil
}

// hubRules are the hub's rules for nft: one transaction that replaces the ones
// before.
func hubRules(links map[Link]Quality) string {
	var b strings.Builder
	b.WriteString("table bridge claimq\ndelete table bridge claimq\ntable bridge claimq {\n")
	b.WriteString("chain forward {\ntype filter hook forward priority 0; policy accept;\n")
	for _, link := range slices.SortedFunc(maps.Keys(links), compareLinks) {
		q := links[link]
		switch {
		case q.Cut:
			fmt.Fprintf(&b, "iifname \"p%d\" oifname \"p%d\" drop\n", link.From, link.To)
		case q.Loss > 0:
			fmt.Fprintf(&b, "iifname \"p%d\" oifname \"p%d\" numgen random mod 10000 < %d drop\n", link.From, link.To, int(q.Loss*10000))
		}
	}
	b.WriteString("}\n}\n")
	return b.String()
}

func compareLinks(a, b Link) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

// route leads those links of the host through the switch that have to.
func (h *Hosts) route(ctx context.Context, host *Host, links map[Link]Quality) error {
	var batch strings.Builder
	for other := range h.hosts {
		link := Link{host.number, other}
		switch late := links[link].late(); {
		case late && !h.routed[link]:
			fmt.Fprintf(&batch, "route replace %s/32 dev %s src %s\n", address(other), switchDevice, host.addr)
			h.routed[link] = true
		case !late && h.routed[link]:
			fmt.Fprintf(&batch, "route del %s/32 dev %s\n", address(other), switchDevice)
			delete(h.routed, link)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return host.ns.command(ctx, batch.String(), nil, "ip", "-batch", "-")
}

// limitBurst is what a limited host may send at once, in bytes: a few packets.
const limitBurst = 8 * mtu

// Limit bounds what the node's host sends to all others together to that many
// bytes per second, until remove is called. Of several limits the lowest holds.
// What does not fit waits for up to a second and is lost after that.
func (h *Hosts) Limit(number int, bytesPerSecond int64) (remove func() error, err error) {
	if !h.has(number) || bytesPerSecond < 1 {
		return nil, fmt.Errorf("a limit of %d bytes/s for host %d: not possible", bytesPerSecond, number)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limits[number] = append(h.limits[number], bytesPerSecond)
	if err := h.limitLocked(number); err != nil {
		h.forgetLocked(number, bytesPerSecond)
		return nil, err
	}
	removed := false
	return func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if removed {
			return nil
		}
		removed = true
		h.forgetLocked(number, bytesPerSecond)
		return h.limitLocked(number)
	}, nil
}

func (h *Hosts) forgetLocked(number int, limit int64) {
	i := slices.Index(h.limits[number], limit)
	h.limits[number] = slices.Delete(h.limits[number], i, i+1)
}

// limitLocked sets the lowest limit on the host's devices.
func (h *Hosts) limitLocked(number int) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	host := h.hosts[number]
	for _, device := range []string{"eth0", switchDevice} {
		args := []string{"qdisc", "del", "dev", device, "root"}
		if limits := h.limits[number]; len(limits) > 0 {
			args = []string{
				"qdisc", "replace", "dev", device, "root", "tbf",
				"rate", fmt.Sprintf("%dbps", slices.Min(limits)), "burst", fmt.Sprint(limitBurst), "latency", "1s",
			}
		}
		if err := host.ns.command(ctx, "", nil, "tc", args...); err != nil {
			return fmt.Errorf("limit host %d: %w", number, err)
		}
	}
	return nil
}
