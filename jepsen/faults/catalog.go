package faults

// Catalog returns all faults. Those that need no root come first.
func Catalog() []Fault {
	return []Fault{
		process{name: "kill-one", act: kill, pick: one},
		process{name: "kill-leader", act: kill, pick: leader},
		process{name: "kill-majority", act: kill, pick: majority},
		process{name: "kill-all", act: kill, pick: all},
		process{name: "pause-one", act: pause, pick: one},
		process{name: "pause-leader", act: pause, pick: leader},
		process{name: "pause-majority", act: pause, pick: majority},
		process{name: "pause-all", act: pause, pick: all},
		rolling{},

		network{name: "partition-one", shape: isolate(one)},
		network{name: "partition-leader", shape: isolate(leader)},
		network{name: "partition-split", shape: split},
		network{name: "partition-deaf", shape: deaf(one)},
		network{name: "partition-mute", shape: mute(one)},
		network{name: "partition-leader-deaf", shape: deaf(leader)},
		network{name: "partition-leader-mute", shape: mute(leader)},
		network{name: "partition-bridge", shape: bridge},
		network{name: "partition-ring", shape: ring},
		network{name: "net-slow", shape: bad(all, slow, "late packets")},
		network{name: "net-slow-one", shape: bad(one, verySlow, "very late packets")},
		network{name: "net-slow-leader", shape: bad(leader, verySlow, "very late packets")},

		network{name: "net-loss", root: true, shape: bad(all, lossy, "packets lost")},
		network{name: "net-duplicate", root: true, shape: bad(all, duplicated, "packets twice")},
		network{name: "net-reorder", root: true, shape: bad(all, reordered, "packets out of order")},
		network{name: "net-flaky", root: true, shape: bad(all, flaky, "packets late, lost, twice and out of order")},
		narrow{name: "net-narrow-one", pick: one},
		narrow{name: "net-narrow-leader", pick: leader},

		badSync{name: "disk-slow-one", pick: one, tamper: slowSync},
		badSync{name: "disk-slow-leader", pick: leader, tamper: slowSync},
		badSync{name: "disk-slow-all", pick: all, tamper: slowSync},
		badSync{name: "disk-eio-one", pick: one, tamper: failingSync},
		badSync{name: "disk-eio-leader", pick: leader, tamper: failingSync},
		power{name: "power-one", pick: one},
		power{name: "power-leader", pick: leader},
		power{name: "power-majority", pick: majority},
		power{name: "power-all", pick: all},
		power{name: "power-one-torn", pick: one, torn: true},
		power{name: "power-leader-torn", pick: leader, torn: true},
		power{name: "power-majority-torn", pick: majority, torn: true},
		power{name: "power-all-torn", pick: all, torn: true},
	}
}
