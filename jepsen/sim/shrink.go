package sim

import "slices"

// Shrink returns which steps of a failing run are enough for it to fail, in any
// way: none of them can be left out alone.
func Shrink(cfg Config) Config {
	keep := cfg.Only
	for step := range cfg.Steps {
		if cfg.Only == nil {
			keep = append(keep, step)
		}
	}
	keep = shrink(keep, func(only []int) bool {
		return Run(Config{Seed: cfg.Seed, Steps: cfg.Steps, Only: only}).Failure != ""
	})
	return Config{Seed: cfg.Seed, Steps: cfg.Steps, Only: keep}
}

// shrink leaves out one step after the other without which the others fail, until there is
// none. Each round but the last has fewer of them.
func shrink(keep []int, fails func([]int) bool) []int {
	for dropped := true; dropped; {
		dropped = false
		for i := len(keep) - 1; i >= 0; i-- { // what came last is needed least
			if fewer := slices.Concat(keep[:i], keep[i+1:]); fails(fewer) {
				keep, dropped = fewer, true
			}
		}
	}
	return keep
}
