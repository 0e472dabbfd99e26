package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

const (
	// patience bounds the wait for the status that a row must have, behind its time.
	patience = time.Minute
	// prepareTries and preparePause bound the tries to prepare a row, which may be refused
	// while the nodes get rid of the row before.
	prepareTries, preparePause = 60, time.Second
)

// Config says what to ask.
type Config struct {
	Nodes *procs.Cluster // it runs, with an empty state
	Key   string         // of the nodes, for every role
	Conns int            // at once
	Hold  time.Duration  // how long each row asks
	Calls []string       // whose rows are asked, in the order of the table; none: all
	// Follower says that another node than the leader is asked.
	Follower bool
	MaxBytes int64     // that a node's process may have resident
	Out      io.Writer // is told of each row
}

// Report is the result of a run.
type Report struct {
	Rows  []Found
	Wrong []string
}

// Found is the result of a row.
type Found struct {
	Call, About string
	Statuses    map[int]int // how many answers had each; 0: the connection was closed without one
	Peak        int64       // bytes that the largest process had resident
}

// OK reports whether all rows were asked, and none took too much.
func (r *Report) OK() bool { return len(r.Wrong) == 0 }

// String lists the rows that took most, and what is wrong.
func (r *Report) String() string {
	most := slices.Clone(r.Rows)
	slices.SortStableFunc(most, func(a, b Found) int { return int(b.Peak - a.Peak) })
	var out strings.Builder
	fmt.Fprintf(&out, "%d rows; most took:\n", len(most))
	for _, f := range most[:min(len(most), 10)] {
		fmt.Fprintf(&out, "  %4d MiB  %s\n", f.Peak>>20, f.name())
	}
	for _, wrong := range r.Wrong {
		fmt.Fprintln(&out, "wrong:", wrong)
	}
	return out.String()
}

func (f *Found) name() string { return strings.TrimSpace(f.Call + " " + f.About) }

// Names returns the calls that have a row.
func Names() []string {
	var names []string
	for _, r := range rows() {
		names = append(names, r.call)
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// Run makes the state, and asks.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	leader, err := cfg.Nodes.WaitLeader(ctx)
	if err != nil {
		return nil, err
	}
	s := &state{node: leader, tasks: map[string]*wire.Task{}}
	if err := s.fill(ctx); err != nil {
		return nil, fmt.Errorf("make the state: %w", err)
	}
	bytes, err := leader.Metric(ctx, "claimq_state_bytes")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(cfg.Out, "the state takes %.0f MiB by the estimate\n", bytes/(1<<20))
	report := &Report{}
	for _, r := range rows() {
		if len(cfg.Calls) > 0 && !slices.Contains(cfg.Calls, r.call) {
			continue
		}
		found, err := cfg.ask(ctx, s, r)
		if err != nil {
			return report, fmt.Errorf("%s: %w", found.name(), err)
		}
		report.add(&cfg, r, found)
	}
	return report, nil
}

// add judges a row.
func (r *Report) add(cfg *Config, asked row, found Found) {
	r.Rows = append(r.Rows, found)
	fmt.Fprintf(cfg.Out, "%4d MiB  %-70s %v\n", found.Peak>>20, found.name(), found.Statuses)
	if found.Peak > cfg.MaxBytes {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s took %d MiB, more than %d", found.name(), found.Peak>>20, cfg.MaxBytes>>20))
	}
	if !found.has(asked.want) {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s was never answered with %d: %v", found.name(), asked.want, found.Statuses))
	}
}

// has reports whether the status came; 0: any did but those that say that it is too much.
func (f *Found) has(want int) bool {
	for status, count := range f.Statuses {
		if count > 0 && (status == want || want == 0 && status != 0 && status != 503 && status != 429) {
			return true
		}
	}
	return false
}

// ask has all connections ask for a row.
func (cfg *Config) ask(ctx context.Context, s *state, r row) (Found, error) {
	found := Found{Call: r.call, About: r.about, Statuses: map[int]int{}}
	s.round++
	if r.fresh {
		if err := again(ctx, func() error { return s.refresh(ctx, min(cfg.Conns, itemsMax)) }); err != nil {
			return found, err
		}
	}
	body := ""
	if r.body != nil {
		body = r.body(s)
	}
	node, err := cfg.node(ctx)
	if err != nil {
		return found, err
	}
	for _, n := range cfg.Nodes.Nodes {
		if err := n.ResetPeak(); err != nil {
			return found, err
		}
	}
	holding, stop := context.WithTimeout(ctx, cfg.Hold+patience)
	defer stop()
	var (
		askers sync.WaitGroup
		number atomic.Int64
		mu     sync.Mutex // guards found.Statuses
	)
	told := func(status int) {
		mu.Lock()
		defer mu.Unlock()
		found.Statuses[status]++
	}
	for range cfg.Conns {
		askers.Go(func() {
			a := asker{addr: node.HTTPAddr, key: cfg.Key}
			defer a.close()
			for pause.For(holding, againPause) {
				if err := a.ask(holding, r.method, s.target(r, number.Add(1)), r.sqs, body, told); errors.Is(err, errBroken) && holding.Err() == nil {
					told(0)
				}
			}
		})
	}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return found.has(r.want)
	}
	began := time.Now()
	if r.during != nil {
		pause.For(holding, cfg.Hold/4)
		if err := again(holding, func() error { return r.during(holding, s) }); err != nil {
			stop()
			askers.Wait()
			return found, err
		}
	}
	for pause.For(holding, againPause) && (time.Since(began) < cfg.Hold || !enough()) && cfg.running() == nil {
	}
	stop()
	askers.Wait()
	for _, n := range cfg.Nodes.Nodes {
		found.Peak = max(found.Peak, n.PeakBytes())
	}
	if r.fresh {
		err = again(ctx, func() error { return s.clear(ctx) })
	}
	return found, errors.Join(cfg.running(), err)
}

// node returns the node that is asked.
func (cfg *Config) node(ctx context.Context) (*procs.Node, error) {
	leader, err := cfg.Nodes.WaitLeader(ctx)
	if err != nil || !cfg.Follower {
		return leader, err
	}
	for _, n := range cfg.Nodes.Nodes {
		if n != leader {
			return n, nil
		}
	}
	return nil, errors.New("there is no other node than the leader")
}

// running returns an error if a node has ended.
func (cfg *Config) running() error {
	for _, n := range cfg.Nodes.Nodes {
		if !n.Running() {
			return fmt.Errorf("%s ended with exit code %d:\n%s", n.ID, n.ExitCode(), n.LogTail(20))
		}
	}
	return nil
}

// again tries until it succeeds.
func again(ctx context.Context, try func() error) (err error) {
	for range prepareTries {
		if err = try(); err == nil || !pause.For(ctx, preparePause) {
			return err
		}
	}
	return err
}

// target is the row's target for the n-th request.
func (s *state) target(r row, n int64) string {
	target := strings.ReplaceAll(r.target, "{n}", strconv.FormatInt(n, 10))
	if r.fresh && len(s.fresh) > 0 {
		target = strings.ReplaceAll(target, "{fresh}", strconv.FormatUint(s.fresh[int(n)%len(s.fresh)], 10))
	}
	if begin, rest, ok := strings.Cut(target, "{"); ok {
		name, end, _ := strings.Cut(rest, "}")
		target = begin + strconv.FormatUint(s.tasks[name].ID, 10) + end
	}
	return target
}
