package sim

import "slices"

// step is one thing that is done to the world. Its own seed decides the rest.
type step struct {
	number int   // in the plan, from 0
	gap    int64 // after the step before
	kind   int   // its row of kinds
	seed   uint64
}

// profile is how a seed's world is: some are calm, some are all loss, some
// never change leaders. Numbers of dice are per thousand.
type profile struct {
	loss, double, refused, hiccup, slowEntry, behind int64

	netMS, entryMS int64
	gapMS          int64 // between steps, on average
	burst          int64 // how many of them come at once
	hashEvery      uint64
	workers        int64
	types          int64
	keys           int64
	shared         int64  // tasks with a key of others, of those with a key
	level          uint32 // the feature level that the first leader brings about
	groups         int64  // how many names; 0: there are none
	endedBytes     int64  // ended tasks may take so much; 0: as much as they want
	life           life
	rates          [replicaCount]int64
	walls          [replicaCount]int64
	parents        int64 // how many of the tasks submitted have steps, per thousand; 0: no step is about parents
	workflows      bool  // most of what is done is about parents
	long           bool  // idles may last longer than what is remembered
}

// life is how many tasks of a world have what, per thousand.
type life struct{ delay, expires, backoff, keep, labels, active, ofType, group int64 }

// makePlan draws the world and its steps.
func makePlan(seed uint64, count int) (profile, []step) {
	d := newDice(seed, 1)
	p := profile{
		loss: pick[int64](d, 0, 10, 50, 200), double: pick[int64](d, 0, 10, 50, 150), refused: pick[int64](d, 0, 10, 100),
		hiccup: pick[int64](d, 0, 0, 30), slowEntry: pick[int64](d, 0, 0, 20, 60), behind: pick[int64](d, 0, 100, 700),
		netMS: pick[int64](d, 0, 2, 20, 200), entryMS: pick[int64](d, 1, 5, 40), gapMS: pick[int64](d, 1, 3, 20, 100), burst: pick[int64](d, 0, 500, 900),
		hashEvery: uint64(pick[int64](d, 8, 16, 32, 64)), workers: 1 + d.n(6), types: 1 + d.n(3), keys: 1 + d.n(6), long: d.in(150),
	}
	rates := []int64{-500, -137, 0, 263, 500} // millionths: 0.05 % is promised
	for i := range replicaCount {
		p.rates[i] = rates[d.n(5)]
		p.walls[i] = d.n(4*second) - 2*second
	}
	off := make([]bool, len(kinds)) // steps that this world does not know
	for k := range kinds {
		off[k] = kinds[k].class >= further && d.in(250)
	}
	p.drawLife(d)
	p.drawRivals(newDice(seed, 5))
	if tenants := newDice(seed, 6); tenants.in(250) {
		p.life.ofType = pick[int64](tenants, 300, 600)
	}
	drawn := make([]int64, len(kinds))
	var total int64
	for k, row := range kinds {
		if !off[k] && (row.class != family || p.parents > 0) {
			total += p.weigh(row, d)
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

// weigh draws how often the steps of a kind come.
func (p *profile) weigh(k kind, d *dice) int64 {
	weight := k.weight
	if k.class != faulty {
		weight = weight * pick[int64](d, 1, 2, 2, 3) / 2
	}
	switch {
	case !p.workflows:
	case k.class < family:
		weight /= 5
	case k.class == family:
		weight *= 2
	}
	return weight
}

// drawLife draws what the tasks of the world are like.
func (p *profile) drawLife(d *dice) {
	p.level = uint32(pick[int64](d, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5))
	if p.level >= levelSteps {
		p.parents = pick[int64](d, 0, 30, 100, 300)
		p.workflows = p.parents > 0 && d.in(600)
	}
	if p.workflows {
		p.gapMS = pick[int64](d, 10, 50, 150, 400)
	}
	p.groups = pick[int64](d, 0, 1, 2, 3)
	p.endedBytes = pick[int64](d, 0, 0, 0, 4000, 12_000)
	p.life = life{
		delay: pick[int64](d, 0, 50, 200), expires: pick[int64](d, 0, 50, 150), backoff: pick[int64](d, 0, 100, 500),
		keep: pick[int64](d, 0, 100, 400), labels: pick[int64](d, 0, 100), active: pick[int64](d, 0, 100, 500), group: pick[int64](d, 100, 400, 900),
	}
}

// drawRivals lets the tasks of some worlds be after one key, some as long as they
// are there, which is not long, and some until they end: who has it, who had it and
// who is to have it again meet there.
func (p *profile) drawRivals(d *dice) {
	p.shared = 400
	if d.in(60) {
		p.keys, p.shared, p.life.keep, p.life.active = 1, 800, 600, 500
	}
}

func pick[T any](d *dice, of ...T) T { return of[d.n(int64(len(of)))] }
