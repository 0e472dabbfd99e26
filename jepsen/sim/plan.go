package sim

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
)

// step is one action in the world. Its own seed determines the details.
type step struct {
	number int   // in the plan, from 0
	gap    int64 // after the step before
	kind   int   // index in kinds
	seed   uint64
}

// profile describes a seed's world: some are calm, some lose a lot, some never change
// leaders. Numbers for dice are per thousand.
type profile struct {
	loss, double, refused, hiccup, slowEntry int64

	netMS, entryMS int64
	gapMS          int64 // between steps, on average
	burst          int64 // steps that come at once
	hashEvery      uint64
	workers        int64
	types          int64
	keys           int64
	shared         int64  // tasks with a key of others, among those with a key
	options        int64  // frequency of each optional field of a task or a command
	parents        int64  // tasks with steps, among those submitted
	level          uint32 // the first leader raises the cluster to this feature level
	endedBytes     int64  // bound of ended tasks; 0: none
	rates          [replicaCount]int64
	walls          [replicaCount]int64
	long           bool // idles may last longer than repeats are remembered
}

// makePlan draws the world and its steps.
func makePlan(seed uint64, count int) (profile, []step) {
	d := newDice(seed, 1)
	p := profile{
		loss: pick[int64](d, 0, 10, 50, 200), double: pick[int64](d, 0, 10, 50, 150), refused: pick[int64](d, 0, 10, 100),
		hiccup: pick[int64](d, 0, 0, 30), slowEntry: pick[int64](d, 0, 0, 20, 60),
		netMS: pick[int64](d, 0, 2, 20, 200), entryMS: pick[int64](d, 1, 5, 40), gapMS: pick[int64](d, 1, 3, 20, 100), burst: pick[int64](d, 0, 500, 900),
		hashEvery: uint64(pick[int64](d, 8, 16, 32, 64)), workers: 1 + d.n(6), types: 1 + d.n(3), keys: 1 + d.n(6), shared: pick[int64](d, 400, 400, 800),
		level: pick[uint32](d, 1, 2, 3, 4, 5, 6, 6), endedBytes: pick[int64](d, 0, 0, 0, 4000, 12_000), long: d.in(150),
	}
	if p.level >= command.LevelOf(command.Patch{}) {
		p.options = pick[int64](d, 30, 100, 300)
	}
	if p.level >= command.LevelOf(command.Finalize{}) {
		p.parents = pick[int64](d, 0, 100, 300)
	}
	rates := []int64{-500, -137, 0, 263, 500} // millionths: 0.05 % is promised
	for i := range replicaCount {
		p.rates[i] = rates[d.n(5)]
		p.walls[i] = d.n(4*second) - 2*second
	}
	off := make([]bool, len(kinds)) // steps that this world does not have
	for k := range kinds {
		off[k] = !kinds[k].always && d.in(250)
	}
	drawn := make([]int64, len(kinds))
	var total int64
	for k, row := range kinds {
		if !off[k] {
			total += row.weight
		}
		drawn[k] = total
	}
	steps := make([]step, count)
	for i := range steps {
		steps[i] = step{number: i, gap: d.n(2 * p.gapMS * millisecond), seed: d.Uint64()}
		roll := d.n(total)
		steps[i].kind = slices.IndexFunc(drawn, func(upTo int64) bool { return roll < upTo })
		switch {
		case d.in(8):
			steps[i].gap += d.n(6 * second)
		case d.in(p.burst):
			steps[i].gap = 0
		}
	}
	return p, steps
}

func pick[T any](d *dice, of ...T) T { return of[d.n(int64(len(of)))] }
