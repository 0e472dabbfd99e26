package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// slot is a place in the crew: a sequence of worker processes, and their way to the nodes.
type slot struct {
	number int
	way    *way
	told   diary.Config // for each of its processes, except name and diary
	nodes  []string     // URLs of the proxies that a served worker takes for the nodes
	crew   *crew
	// lives are its processes, all with the worker's ID; the last one runs. Only the
	// goroutine of the slot uses them.
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
	// stopWait is the time for the worker's handlers after SIGTERM, and stopTimeout bounds
	// the whole stop.
	stopWait    = 1500 * time.Millisecond
	stopTimeout = 40 * time.Second
)

// newCrew opens the workers' ways without starting workers. The caller must close the crew.
func newCrew(cfg Config, store string, nodes []string) *crew {
	c := &crew{cfg: cfg, strikes: &strikes{}}
	for i := range cfg.Workers {
		w := openWay(i, c.strikes, cfg.Seed*1000+int64(i))
		s := &slot{number: i, way: w, crew: c}
		bare := i%3 == 2 && len(cfg.Served) == 0
		if w.strays = strayShare; bare {
			w.strays = strayShareBare
		}
		// Leases of 1 to 2 times the configured length.
		lease := cfg.Lease + time.Duration(i)*cfg.Lease/time.Duration(max(cfg.Workers-1, 1))
		s.told = diary.Config{Nodes: nodes, Store: store, Bare: bare, Lease: lease, StopWait: stopWait, Concurrency: concurrency}
		if len(cfg.Served) == 0 {
			s.told.Way = w.proxy()
		} else {
			for _, node := range nodes {
				s.nodes = append(s.nodes, "http://"+w.proxyOf(strings.TrimPrefix(node, "http://")))
			}
		}
		c.slots = append(c.slots, s)
	}
	return c
}

// close kills all running processes.
func (c *crew) close() {
	for _, s := range c.slots {
		_ = procs.KillAll(s.lives...) // failures cannot be reported
		s.way.close()
	}
}

// process returns the current process.
func (s *slot) process() *procs.Node { return s.lives[len(s.lives)-1] }

// start starts the slot's next process.
func (s *slot) start() error {
	told := s.told
	told.ID = fmt.Sprintf("w%d-%d", s.number+1, len(s.lives)+1)
	p := &procs.Node{ID: told.ID, LogPath: filepath.Join(s.crew.cfg.Dir, told.ID+".log")}
	told.Diary = diaryOf(p)
	if len(s.crew.cfg.Served) > 0 {
		p.SetBinary("/usr/bin/env")
		p.Args = s.served(&told)
	} else {
		text, err := json.Marshal(told)
		if err != nil {
			return err
		}
		p.Args = []string{string(text)}
		p.SetBinary(s.crew.cfg.Worker)
	}
	s.lives = append(s.lives, p)
	return p.Start()
}

// served returns the arguments of env that start a claimq work --serve.
func (s *slot) served(told *diary.Config) []string {
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
	return append([]string{
		"CLAIMQ_ENDPOINTS=" + strings.Join(s.nodes, ","), "CLAIMQ_WORKER=" + told.ID, "CLAIMQ_LEASE=" + told.Lease.Truncate(time.Millisecond).String(), "CLAIMQ_STOP_WAIT=" + told.StopWait.String(),
		"DIARY=" + told.Diary, "STORE=" + told.Store, "LEASE=" + seconds(told.Lease),
		"PYTHONDONTWRITEBYTECODE=1", s.crew.cfg.Worker,
	}, s.crew.cfg.Served...)
}

// diaryOf returns the path of the process's diary. The programs of a served worker append a dot and their pid.
func diaryOf(p *procs.Node) string { return strings.TrimSuffix(p.LogPath, ".log") + ".diary" }

// stop asks the process to end, and waits for it.
func (s *slot) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, errors.New("a worker does not stop"))
	defer cancel()
	return s.process().Stop(ctx)
}
