package faults

// Catalog returns all faults, the gentle ones first.
func Catalog() []Fault {
	return []Fault{
		process{name: "kill-one", act: kill, pick: one},
		process{name: "kill-leader", act: kill, pick: leader},
		process{name: "kill-all", act: kill, pick: all},
		process{name: "pause-one", act: pause, pick: one},
		process{name: "pause-leader", act: pause, pick: leader},
		process{name: "pause-majority", act: pause, pick: majority},
		rolling{},
	}
}
