package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

const (
	// slowRequest is what no request may take longer than because of a snapshot.
	slowRequest = 50 * time.Millisecond
	// windowRest is how long the load runs uncounted between two windows: the disk
	// still has a snapshot in its cache.
	windowRest = time.Second
	// afterSnapshot is how long a window goes on after the last node has written its
	// snapshot: the log behind it is dropped then.
	afterSnapshot = time.Second
)

// window is a time during which calls are counted.
type window struct {
	beside   bool // a snapshot of each node was being written
	from, to time.Time
}

// loadInWindows runs load on as many connections as cfg says, all the time, and
// counts it in windows in turn: for a while with nothing beside it, and while all
// nodes write a snapshot, from before the call until after its end. It prints what
// the calls took in both.
func loadInWindows(ctx context.Context, cfg scaleConfig, c *procs.Cluster) error {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return err
	}
	loadCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	load := newWindowLoad(cfg.conns)
	var running sync.WaitGroup
	for _, conn := range load.conns {
		running.Go(func() {
			if err := conn.run(loadCtx, leader.HTTPAddr); err != nil {
				stop(fmt.Errorf("the load: %w", err))
			}
		})
	}
	windows, err := openWindows(loadCtx, cfg, c)
	if errors.Is(err, context.Canceled) {
		err = context.Cause(loadCtx)
	}
	stop(nil)
	running.Wait()
	if err != nil {
		return err
	}
	return printWindows(cfg.out, cfg.conns, load, windows)
}

// openWindows waits through the windows and returns them.
func openWindows(ctx context.Context, cfg scaleConfig, c *procs.Cluster) ([]window, error) {
	var windows []window
	for range cfg.pairs {
		if err := waitFor(ctx, windowRest); err != nil {
			return nil, err
		}
		alone := window{from: time.Now()}
		if err := waitFor(ctx, cfg.window); err != nil {
			return nil, err
		}
		alone.to = time.Now()
		beside := window{beside: true, from: alone.to}
		if err := snapshotNow(ctx, c); err != nil {
			return nil, err
		}
		if err := waitFor(ctx, afterSnapshot); err != nil {
			return nil, err
		}
		beside.to = time.Now()
		windows = append(windows, alone, beside)
	}
	return windows, nil
}

func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// windowStats are the calls of one kind in the windows with a snapshot, or in those
// without.
type windowStats struct {
	took []time.Duration // sorted
	slow []int           // calls slower than slowRequest, by window
}

// windowCalls sorts the calls of one kind that were begun in a window.
func windowCalls(load *windowLoad, windows []window, kind int, beside bool) windowStats {
	var s windowStats
	for _, w := range windows {
		if w.beside != beside {
			continue
		}
		slow := 0
		for _, c := range load.conns {
			first, _ := slices.BinarySearchFunc(c.calls, w.from, func(t timedCall, at time.Time) int { return t.at.Compare(at) })
			for _, t := range c.calls[first:] {
				if !t.at.Before(w.to) {
					break
				}
				if t.kind != kind && kind != everyCall {
					continue
				}
				s.took = append(s.took, t.took)
				if t.took > slowRequest {
					slow++
				}
			}
		}
		s.slow = append(s.slow, slow)
	}
	slices.Sort(s.took)
	return s
}

// stall is a group of slow calls that were begun one soon after the other.
type stall struct {
	window int           // which, from 1
	after  time.Duration // from the window's start to the first call
	calls  int
	worst  time.Duration
}

// stallGap is how far apart the calls of one stall are at most.
const stallGap = 100 * time.Millisecond

// stalls returns the slow calls of all kinds in the windows with snapshots, or in
// those without.
func stalls(load *windowLoad, windows []window, beside bool) []stall {
	var all []stall
	number := 0
	for _, w := range windows {
		if w.beside != beside {
			continue
		}
		number++
		var slow []timedCall
		for _, c := range load.conns {
			for _, t := range c.calls {
				if t.took > slowRequest && !t.at.Before(w.from) && t.at.Before(w.to) {
					slow = append(slow, t)
				}
			}
		}
		slices.SortFunc(slow, func(a, b timedCall) int { return a.at.Compare(b.at) })
		for i, t := range slow {
			if i == 0 || t.at.Sub(slow[i-1].at) > stallGap {
				all = append(all, stall{window: number, after: t.at.Sub(w.from)})
			}
			last := &all[len(all)-1]
			last.calls, last.worst = last.calls+1, max(last.worst, t.took)
		}
	}
	return all
}

// at returns the time that a share p of the calls took at most, in milliseconds.
func (s windowStats) at(p float64) float64 {
	if len(s.took) == 0 {
		return 0
	}
	return s.took[min(int(float64(len(s.took))*p), len(s.took)-1)].Seconds() * 1000
}

func (s windowStats) slowCount() int {
	sum := 0
	for _, n := range s.slow {
		sum += n
	}
	return sum
}

func printWindows(out io.Writer, conns int, load *windowLoad, windows []window) error {
	var rate [2]float64 // calls per second: alone, beside
	var took [2]time.Duration
	for _, w := range windows {
		took[number(w.beside)] += w.to.Sub(w.from)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "call\t\tcount\tp50 ms\tp99 ms\tp99.9 ms\tmax ms\tslow\tslow of 10,000\t")
	every := [2]windowStats{}
	for kind := range everyCall + 1 {
		for _, beside := range []bool{false, true} {
			s := windowCalls(load, windows, kind, beside)
			if kind == everyCall {
				every[number(beside)] = s
				rate[number(beside)] = float64(len(s.took)) / took[number(beside)].Seconds()
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%.2f\t\n", callNames[kind], besideNames[number(beside)], len(s.took),
				s.at(0.50), s.at(0.99), s.at(0.999), s.at(1), s.slowCount(), float64(s.slowCount())*1e4/float64(max(1, len(s.took))))
		}
	}
	fmt.Fprintf(out, "%d connections: %.0f calls a second alone in %.0f s, %.0f beside the snapshots of all nodes in %.0f s: %.2f of it\n",
		conns, rate[0], took[0].Seconds(), rate[1], took[1].Seconds(), rate[1]/max(1, rate[0]))
	if err := t.Flush(); err != nil {
		return err
	}
	for i, s := range every {
		fmt.Fprintf(out, "calls slower than %v, window by window, %s: %s\n", slowRequest, besideNames[i], strings.Trim(fmt.Sprint(s.slow), "[]"))
		for _, l := range stalls(load, windows, i == 1) {
			fmt.Fprintf(out, "  window %d, after %.2f s: %d calls, the slowest %.0f ms\n", l.window, l.after.Seconds(), l.calls, l.worst.Seconds()*1000)
		}
	}
	return nil
}

var besideNames = [2]string{"alone", "beside"}

// number is 1 for true, as an index.
func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
