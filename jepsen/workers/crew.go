package workers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// slot is a place in the crew: one worker process after the other has it, and its
// way to the nodes.
type slot struct {
	number int
	way    *way
	lease  time.Duration
	bare   bool
	crew   *crew
	// process is the one that runs. Only the goroutine that looks after the slot
	// touches it.
	process *procs.Node
	lives   []life
}

// life is a worker process, from its start to its end.
type life struct {
	process *procs.Node // whose ID is the worker's
	diary   string      // where its diary is
	killed  bool
}

// crew is all worker processes.
type crew struct {
	cfg     Config
	store   string // URL
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
func newCrew(cfg Config, store string, nodes []string) (*crew, error) {
	c := &crew{cfg: cfg, store: store, strikes: &strikes{}}
	for i := range cfg.Workers {
		w, err := openWay(i, nodes, c.strikes, cfg.Seed*1000+int64(i))
		if err != nil {
			c.close()
			return nil, err
		}
		// Leases of 1 to 2 of the configured length; every third worker is bare.
		lease := cfg.Lease + time.Duration(i)*cfg.Lease/time.Duration(max(cfg.Workers-1, 1))
		c.slots = append(c.slots, &slot{number: i, way: w, lease: lease, bare: i%3 == 2, crew: c})
	}
	return c, nil
}

// close kills what still runs.
func (c *crew) close() {
	for _, s := range c.slots {
		if s.process != nil && s.process.Running() {
			_ = s.process.Kill() // it may have ended by itself meanwhile
		}
		s.way.close()
	}
}

// start starts the slot's next process.
func (s *slot) start() error {
	id := fmt.Sprintf("w%d-%d", s.number+1, len(s.lives)+1)
	dir := s.crew.cfg.Dir
	p := &procs.Node{ID: id, LogPath: filepath.Join(dir, id+".log")}
	diary := filepath.Join(dir, id+".diary")
	p.Args = []string{
		"-id", id, "-endpoints", strings.Join(s.way.own, ","), "-store", s.crew.store, "-diary", diary,
		"-lease", s.lease.String(), "-stop-wait", stopWait.String(), "-concurrency", fmt.Sprint(concurrency), fmt.Sprintf("-bare=%v", s.bare),
	}
	p.SetBinary(s.crew.cfg.Worker)
	if err := p.Start(); err != nil {
		return err
	}
	s.process = p
	s.lives = append(s.lives, life{process: p, diary: diary})
	return nil
}

// kill ends the process as a crash does.
func (s *slot) kill() error {
	s.lives[len(s.lives)-1].killed = true
	return s.process.Kill()
}

// stop asks the process to end, and waits for it.
func (s *slot) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, errors.New("a worker does not stop"))
	defer cancel()
	return s.process.Stop(ctx)
}

// lives returns all processes that there were.
func (c *crew) lives() []life {
	var all []life
	for _, s := range c.slots {
		all = append(all, s.lives...)
	}
	return all
}
