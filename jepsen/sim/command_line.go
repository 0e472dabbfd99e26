package sim

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stepsDefault is the length of a run's plan. Short runs find more in a given time, because
// their worlds differ more.
const stepsDefault = 100

// ErrFailed is returned when a seed fails.
var ErrFailed = errors.New("a seed fails")

// Main runs the simulator as a command: it runs seeds until one fails, which it then
// shrinks and prints.
func Main(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(out)
	var (
		seeds = flags.Uint64("seeds", 1000, "how many seeds to run")
		from  = flags.Uint64("from", 1, "the first seed")
		steps = flags.Int("steps", stepsDefault, "steps of each seed's plan")
		trace = flags.Bool("trace", false, "tell everything that happens")
	)
	var only []int
	flags.Func("only", "keep these steps of the plan only, as 1,4,5", func(list string) error { return json.Unmarshal([]byte("["+list+"]"), &only) })
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *steps < 1 || *seeds < 1 || flags.NArg() > 0 {
		return errors.New("--seeds and --steps are at least 1, and there are no other arguments")
	}
	slices.Sort(only)
	cfg := Config{Seed: *from, Steps: *steps, Only: only}
	if *trace || cfg.Only != nil {
		cfg.Trace = out
	}
	// Runs are short and leave little behind, so rare garbage collections double the speed.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	start := time.Now()
	parallel := runtime.GOMAXPROCS(0)
	if cfg.Trace != nil {
		parallel = 1
	}
	total := RunSeeds(ctx, cfg, *seeds, parallel)
	fmt.Fprintln(out, total.String(time.Since(start)))
	if total.Failure == "" {
		return ctx.Err()
	}
	cfg.Seed, cfg.Trace = total.Failed, nil
	if cfg.Only == nil {
		tell(cfg, total.Failure, out)
	}
	return fmt.Errorf("%w: %d", ErrFailed, total.Failed)
}

// tell shrinks a failing seed and prints the rest.
func tell(cfg Config, failure string, out io.Writer) {
	fmt.Fprintf(out, "seed %d fails: %s\n", cfg.Seed, failure)
	small := Shrink(cfg)
	fmt.Fprintf(out, "%d of its %d steps are enough:\n", len(small.Only), small.Steps)
	small.Trace = out
	Run(small)
	fmt.Fprintf(out, "replay with: go run ./jepsen sim --from %d --seeds 1 --steps %d --only %s\n", small.Seed, small.Steps, strings.Trim(strings.ReplaceAll(fmt.Sprint(small.Only), " ", ","), "[]"))
}

// Totals is the outcome of many seeds.
type Totals struct {
	Seeds, Commands, Entries int
	Virtual                  time.Duration
	// Failed is the lowest seed that failed, and Failure how; "" if none failed.
	Failed  uint64
	Failure string
}

// String formats the totals in one line.
func (t Totals) String(took time.Duration) string {
	verdict := "no failure"
	if t.Failure != "" {
		verdict = fmt.Sprintf("seed %d FAILS", t.Failed)
	}
	return fmt.Sprintf("%d seeds, %d commands in %d entries, %.1f simulated hours, in %.1f s (%.0f commands/s): %s",
		t.Seeds, t.Commands, t.Entries, t.Virtual.Hours(), took.Seconds(), float64(t.Commands)/took.Seconds(), verdict)
}

// RunSeeds runs count seeds from cfg.Seed on, parallel at a time, and stops early once one
// has failed.
func RunSeeds(ctx context.Context, cfg Config, count uint64, parallel int) Totals {
	var (
		mu    sync.Mutex // guards total
		total Totals
		next  = atomic.Uint64{} // the last seed that was started
		wg    sync.WaitGroup
	)
	next.Store(cfg.Seed - 1)
	for range parallel {
		wg.Go(func() {
			one := cfg
			for failed := false; !failed && ctx.Err() == nil; {
				if one.Seed = next.Add(1); one.Seed-cfg.Seed >= count {
					return
				}
				r := Run(one)
				mu.Lock()
				total.add(one.Seed, r)
				failed = total.Failure != ""
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return total
}

func (t *Totals) add(seed uint64, r Report) {
	t.Seeds++
	t.Commands += r.Commands
	t.Entries += r.Entries
	t.Virtual += time.Duration(r.Virtual)
	if r.Failure != "" && (t.Failure == "" || seed < t.Failed) {
		t.Failed, t.Failure = seed, r.Failure
	}
}
