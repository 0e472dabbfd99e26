package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stepsDefault is the length of a run's plan. Short runs find the most in a
// given time: their worlds differ more.
const stepsDefault = 100

// ErrFailed is returned when a seed fails.
var ErrFailed = errors.New("a seed fails")

// Main runs the simulator as a command: it runs seeds until one fails, which is
// then shrunk and told.
func Main(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(out)
	var (
		seeds   = flags.Uint64("seeds", 1000, "how many seeds to run")
		from    = flags.Uint64("from", 1, "the first seed")
		steps   = flags.Int("steps", stepsDefault, "steps of each seed's plan")
		only    = flags.String("only", "", "keep these steps of the plan only, as 1,4-7")
		trace   = flags.Bool("trace", false, "tell everything that happens")
		workers = flags.Int("parallel", runtime.GOMAXPROCS(0), "seeds to run at a time")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *steps < 1 || *seeds < 1 || *workers < 1 || flags.NArg() > 0 {
		return errors.New("--seeds, --steps and --parallel are at least 1, and there are no other arguments")
	}
	cfg := Config{Seed: *from, Steps: *steps}
	var err error
	if cfg.Only, err = parseOnly(*only); err != nil {
		return fmt.Errorf("--only %q: %w", *only, err)
	}
	if *trace || cfg.Only != nil {
		cfg.Trace = out
	}
	// Runs are short and leave little behind: collecting seldom is half the speed.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	start := time.Now()
	var total Totals
	if cfg.Trace != nil {
		total = runSeeds(ctx, cfg, *seeds, 1)
	} else {
		total = runSeeds(ctx, cfg, *seeds, *workers)
	}
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

// tell shrinks a failing seed and shows what is left of it.
func tell(cfg Config, failure string, out io.Writer) {
	fmt.Fprintf(out, "seed %d fails: %s\n", cfg.Seed, failure)
	small := Shrink(cfg)
	fmt.Fprintf(out, "%d of its %d steps are enough:\n", len(small.Only), small.Steps)
	Replay(small, out)
	fmt.Fprintf(out, "replay with: go run ./jepsen sim --from %d --seeds 1 --steps %d --only %s\n", small.Seed, small.Steps, formatOnly(small.Only))
}

// Totals is the outcome of many seeds.
type Totals struct {
	Seeds, Commands, Entries int
	Virtual                  time.Duration
	// Failed is the lowest seed that failed, and Failure how; "" if none did.
	Failed  uint64
	Failure string
}

// String tells the totals in one line.
func (t Totals) String(took time.Duration) string {
	verdict := "no failure"
	if t.Failure != "" {
		verdict = fmt.Sprintf("seed %d FAILS", t.Failed)
	}
	return fmt.Sprintf("%d seeds, %d commands in %d entries, %.1f simulated hours, in %.1f s (%.0f commands/s): %s",
		t.Seeds, t.Commands, t.Entries, t.Virtual.Hours(), took.Seconds(), float64(t.Commands)/took.Seconds(), verdict)
}

// RunSeeds runs count seeds from cfg.Seed on, as many at a time as there are
// processors, and stops early once one has failed.
func RunSeeds(ctx context.Context, cfg Config, count uint64) Totals {
	return runSeeds(ctx, cfg, count, runtime.GOMAXPROCS(0))
}

func runSeeds(ctx context.Context, cfg Config, count uint64, parallel int) Totals {
	var (
		mu    sync.Mutex // guards what follows
		total Totals
		next  = cfg.Seed
		wg    sync.WaitGroup
	)
	take := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= cfg.Seed+count || total.Failure != "" || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range parallel {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for seed, ok := take(); ok; seed, ok = take() {
				one := cfg
				one.Seed = seed
				r := Run(one)
				mu.Lock()
				total.add(seed, r)
				mu.Unlock()
			}
		}()
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

// parseOnly reads ascending numbers and spans, as 1,4-7. "" is nil.
func parseOnly(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var steps []int
	for part := range strings.SplitSeq(s, ",") {
		low, high, span := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to := from
		if err == nil && span {
			to, err = strconv.Atoi(high)
		}
		if err != nil {
			return nil, err
		}
		if to < from || to-from > 1_000_000 || len(steps) > 0 && from <= steps[len(steps)-1] {
			return nil, fmt.Errorf("%s is not ascending", part)
		}
		for ; from <= to; from++ {
			steps = append(steps, from)
		}
	}
	return steps, nil
}

// formatOnly is the inverse of parseOnly.
func formatOnly(steps []int) string {
	var parts []string
	for i := 0; i < len(steps); {
		last := i
		for last+1 < len(steps) && steps[last+1] == steps[last]+1 {
			last++
		}
		part := strconv.Itoa(steps[i])
		if last > i {
			part += "-" + strconv.Itoa(steps[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}
