package sim

import "io"

// shrinkRunsMax bounds the runs of one shrinking.
const shrinkRunsMax = 2000

// Shrink returns which steps of a failing run are enough for it to fail, in any
// way: none of them can be left out alone. A run that does not fail keeps all
// its steps.
func Shrink(cfg Config) Config {
	cfg.Trace = nil
	runs := 0
	fails := func(only []int) bool {
		runs++
		return Run(Config{Seed: cfg.Seed, Steps: cfg.Steps, Only: only}).Failure != ""
	}
	keep := cfg.Only
	if keep == nil {
		keep = make([]int, cfg.Steps)
		for i := range keep {
			keep[i] = i
		}
	}
	if !fails(keep) {
		return cfg
	}
	for size := max(len(keep)/2, 1); runs < shrinkRunsMax; {
		dropped := false
		// From the end: what came last is needed least.
		for to := len(keep); to > 0 && runs < shrinkRunsMax; to -= size {
			from := max(to-size, 0)
			fewer := append(keep[:from:from], keep[min(to, len(keep)):]...)
			if fails(fewer) {
				keep, dropped = fewer, true
			}
		}
		switch {
		case size > 1:
			size /= 2
		case !dropped:
			cfg.Only = keep
			return cfg
		}
	}
	cfg.Only = keep
	return cfg
}

// Replay runs cfg once more and writes what happens.
func Replay(cfg Config, out io.Writer) Report {
	cfg.Trace = out
	return Run(cfg)
}
