package sim

// shrinkRunsMax bounds the runs of one shrinking.
const shrinkRunsMax = 2000

// Shrink returns which steps of a failing run are enough for it to fail, in any
// way: none of them can be left out alone. A run that does not fail is returned
// as it is.
func Shrink(cfg Config) Config {
	cfg.Trace = nil
	keep := cfg.Only
	if keep == nil {
		keep = make([]int, cfg.Steps)
		for i := range keep {
			keep[i] = i
		}
	}
	if keep = shrink(keep, func(only []int) bool {
		return Run(Config{Seed: cfg.Seed, Steps: cfg.Steps, Only: only}).Failure != ""
	}); keep != nil {
		cfg.Only = keep
	}
	return cfg
}

// shrink leaves steps out, in ever smaller parts, while what is left fails. It
// returns nil if all of them together do not fail.
func shrink(keep []int, fails func([]int) bool) []int {
	if !fails(keep) {
		return nil
	}
	runs := 0
	for size := max(len(keep)/2, 1); runs < shrinkRunsMax; {
		dropped := false
		// From the end: what came last is needed least.
		for to := len(keep); to > 0 && runs < shrinkRunsMax; to -= size {
			fewer := append(keep[:max(to-size, 0):max(to-size, 0)], keep[to:]...)
			runs++
			if fails(fewer) {
				keep, dropped = fewer, true
			}
		}
		if size == 1 && !dropped {
			break
		}
		size = max(size/2, 1)
	}
	return keep
}
