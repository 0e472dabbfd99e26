package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// row describes faults of the catalog that differ only in the nodes that they affect.
type row struct {
	name   string // a * in it stands for the nodes
	whom   string // keys of pickers
	act    act
	traits trait
}

// rows returns all faults. Those that do not need root come first.
func rows() []row {
	const byOperators = ownHosts | operated
	return []row{
		{"kill-*", "one leader majority all", killed, 0},
		{"pause-*", "one leader majority all", paused, 0},
		{"rolling-restart", "shuffled", restarted, 0},
		{"stop-amid-*", "one", amid, alone},
		{"cpu-*", "one leader majority", beating(stopped, 90*time.Millisecond, 15*time.Millisecond, "little of a processor"), 0},
		{"snapshot-kill-*", "one leader all", snapshotKilled, 0},

		{"log-unread-*", "one leader majority all", unread, ownLogs},
		{"log-unread-election", "leader", electing(unread), ownLogs | alone},
		{"log-broken-election", "leader", electing(broken), ownLogs | alone},
		{"files-few-*", "one leader", fewFiles, 0},

		{"clock-far-*", "one leader", jumped(far, 1), ownClocks},
		{"clock-back-*", "one leader", jumped(far, -1), ownClocks},
		{"clock-near-*", "one leader all", jumped(near, 1), ownClocks},
		{"clock-fast-*", "leader", drifting(time.Second), ownClocks},
		{"clock-backward-*", "leader", drifting(-time.Second), ownClocks},

		{"partition-*", "one leader", shaped(isolate), ownHosts},
		{"partition-split", "shuffled", shaped(split), ownHosts},
		{"partition-deaf", "one", shaped(deaf), ownHosts},
		{"partition-mute", "one", shaped(mute), ownHosts},
		{"partition-*-deaf", "leader", shaped(deaf), ownHosts},
		{"partition-*-mute", "leader", shaped(mute), ownHosts},
		{"partition-bridge", "shuffled", shaped(bridge), ownHosts},
		{"partition-ring", "shuffled", shaped(ring), ownHosts},
		{"partition-flap", "all", beating(again(shuffled, shaped(split)), time.Second, time.Second, "the network splits and heals"), ownHosts},
		{"partition-flap-deaf", "all", beating(again(one, shaped(deaf)), 600*time.Millisecond, 600*time.Millisecond, "one or another hears nothing"), ownHosts},
		{"net-slow", "all", shaped(bad(slow, "late packets")), ownHosts},
		{"net-slow-*", "one leader", shaped(bad(verySlow, "very late packets")), ownHosts},
		{"net-loss", "all", shaped(bad(lossy, "packets lost")), ownHosts},
		{"net-duplicate", "all", shaped(bad(duplicated, "packets twice")), ownHosts},
		{"net-reorder", "all", shaped(bad(reordered, "packets out of order")), ownHosts},
		{"net-flaky", "all", shaped(bad(flaky, "packets late, lost, twice and out of order")), ownHosts},
		{"net-narrow-*", "one leader", shaped(narrow), ownHosts},

		{"disk-slow-*", "one leader all", spoiled(slowSync, "each sync takes longer"), ownDisks},
		{"disk-eio-*", "one leader", spoiled(failingSync, "each sync fails with EIO"), ownDisks},
		{"disk-full-*", "one leader all", spoiled(full, "no room on the disk"), ownDisks},
		{"disk-hung-*", "one leader", spoiled(hung, "the disk does not answer"), ownDisks},
		{"disk-rot-*", "one", rotten, byOperators | takesNode},

		// A node that joins is reached at the address at which others reach it.
		{"member-wiped", "one", wiped, byOperators | takesNode},
		{"member-removed", "one", removed, byOperators | takesNode},
		{"member-removed-*", "leader", removed, byOperators | takesNode},
		{"member-demoted", "one", demoted, byOperators | takesNode},
		{"member-moved", "one", moved, byOperators | takesNode},
		{"member-transfer", "leader", transferred, byOperators},

		{"power-*", "one leader majority all", powerOff(false), ownDisks | powerless},
		{"power-*-torn", "one leader majority all", powerOff(true), ownDisks | powerless},
	}
}

// Catalog returns all faults. Those that do not need root come first.
func Catalog() []Fault {
	var all []Fault
	for _, r := range rows() {
		for whom := range strings.FieldsSeq(r.whom) {
			all = append(all, Fault{name: strings.Replace(r.name, "*", whom, 1), traits: r.traits, pick: pickers[whom], act: r.act})
		}
	}
	return all
}

// Names returns the names of the catalog, in its order.
func Names() []string {
	var names []string
	for _, f := range Catalog() {
		names = append(names, f.name)
	}
	return names
}

// ByName returns the faults of the catalog with these names, in this order. A name that
// ends in * stands for all with that beginning; names joined with plus signs are one
// combined fault.
func ByName(names ...string) ([]Fault, error) {
	var found []Fault
	for _, name := range names {
		if parts := strings.Split(name, "+"); len(parts) > 1 {
			faults, err := ByName(parts...)
			if err != nil {
				return nil, err
			}
			found = append(found, Together(faults...))
			continue
		}
		prefix, pattern := strings.CutSuffix(name, "*")
		matching := slices.DeleteFunc(Catalog(), func(f Fault) bool {
			return f.name != name && !(pattern && strings.HasPrefix(f.name, prefix))
		})
		if len(matching) == 0 {
			return nil, fmt.Errorf("%w: %q; there are: %s", ErrUnknown, name, strings.Join(Names(), " "))
		}
		found = append(found, matching...)
	}
	return found, nil
}
