package sim

import "slices"

// Shrink returns a subset of a failing run's steps that still fails, in any way, while
// without any one of them it does not.
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

// shrink removes single steps as long as the rest still fails. Each round but the last
// removes some.
func shrink(keep []int, fails func([]int) bool) []int {
	for dropped := true; dropped; {
		dropped = false
		for i := len(keep) - 1; i >= 0; i-- { // the last steps are the least necessary
			if fewer := slices.Concat(keep[:i], keep[i+1:]); fails(fewer) {
				keep, dropped = fewer, true
			}
		}
	}
	return keep
}
