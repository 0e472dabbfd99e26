package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// slot is a place in the crew: one worker process after the other has it, and its
// way to the nodes.
type slot struct {
	number int
	way    *way
	told   diary.Config // of each of its processes, but for its own name and diary
	crew   *crew
	// lives are its processes, each of which has the worker's ID; the last one runs. Only
	// the goroutine that looks after the slot touches it.
	lives []*procs.Node
}

// crew is all worker processes.
type crew struct {
	cfg     Config
	strikes *strikes
	slots   []*slot
}

const (
	concurrency = 4 // of each worker
	// stopWait is what a worker's handlers have at SIGTERM, and stopTimeout what the
	// process has until it must have ended.
	stopWait    = 1500 * time.Millisecond
	stopTimeout = 40 * time.Second
)

// newCrew opens the workers' ways, and starts none. The caller closes it.
func newCrew(cfg Config, store string, nodes []string) *crew {
	c := &crew{cfg: cfg, strikes: &strikes{}}
	for i := range cfg.Workers {
		w := openWay(i, c.strikes, cfg.Seed*1000+int64(i))
		bare := i%3 == 2
		if w.strays = strayShare; bare {
			w.strays = strayShareBare
		}
		// Leases of 1 to 2 of the configured length.
		lease := cfg.Lease + time.Duration(i)*cfg.Lease/time.Duration(max(cfg.Workers-1, 1))
		told := diary.Config{Nodes: nodes, Way: w.addr(), Store: store, Bare: bare, Lease: lease, StopWait: stopWait, Concurrency: concurrency}
		c.slots = append(c.slots, &slot{number: i, way: w, told: told, crew: c})
	}
	return c
}

// close kills what still runs.
func (c *crew) close() {
	for _, s := range c.slots {
		_ = procs.KillAll(s.lives...) // none can be told any more
		s.way.close()
	}
}

// process is the one that runs.
func (s *slot) process() *procs.Node { return s.lives[len(s.lives)-1] }

// start starts the slot's next process.
func (s *slot) start() error {
	told := s.told
	told.ID = fmt.Sprintf("w%d-%d", s.number+1, len(s.lives)+1)
	p := &procs.Node{ID: told.ID, LogPath: filepath.Join(s.crew.cfg.Dir, told.ID+".log")}
	told.Diary = diaryOf(p)
	text, err := json.Marshal(told)
	if err != nil {
		return err
	}
	p.Args = []string{string(text)}
	p.SetBinary(s.crew.cfg.Worker)
	s.lives = append(s.lives, p)
	return p.Start()
}

// diaryOf is where the process has its diary.
func diaryOf(p *procs.Node) string { return strings.TrimSuffix(p.LogPath, ".log") + ".diary" }

// stop asks the process to end, and waits for it.
func (s *slot) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, errors.New("a worker does not stop"))
	defer cancel()
	return s.process().Stop(ctx)
}
