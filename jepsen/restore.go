package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// restoreConfig says what to show of restores whose leader is killed.
type restoreConfig struct {
	binary string
	dir    string // for backups and nodes; it exists
	sizes  []int  // tasks in the backup
	runs   int    // of each size, in which the leader was killed inside
	seed   int64
	out    io.Writer
}

const (
	// restoreFillMax and restoreRunMax bound the making of a backup, and a run.
	restoreFillMax = 15 * time.Minute
	restoreRunMax  = 10 * time.Minute
	// restoreMissedMax bounds the runs, for each that counts, in which the restore was
	// over before it was seen to be as far as the leader was to be killed at.
	restoreMissedMax = 3
	// restoreBegun to 1 is how many leaders are killed as soon as the restore is seen, to
	// those that are when a part of the backup is there, which is drawn.
	restoreBegun = 0.5
)

// runRestore kills leaders in the midst of restores, and looks what every node has.
func runRestore(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("restore", flag.ContinueOnError)
	cfg := restoreConfig{out: out}
	tasks := flags.String("tasks", "0,1000,200000", "tasks in the backup, one size after the other, separated by commas")
	flags.IntVar(&cfg.runs, "runs", 20, "how many times the leader is killed inside a restore of each size")
	flags.Int64Var(&cfg.seed, "seed", time.Now().Unix(), "of how far each restore is when its leader is killed")
	flags.StringVar(&cfg.binary, "binary", "", "the claimq binary; built if not given")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for text := range strings.SplitSeq(*tasks, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 0 {
			return fmt.Errorf("--tasks is %q: numbers of tasks, separated by commas, are needed\n%s", *tasks, usage)
		}
		cfg.sizes = append(cfg.sizes, size)
	}
	if cfg.runs < 1 {
		return fmt.Errorf("--runs is %d: it must be at least 1\n%s", cfg.runs, usage)
	}
	w, err := openWorkspace(ctx, "restore", cfg.binary)
	if err != nil {
		return err
	}
	cfg.binary, cfg.dir = w.binary, w.dir
	if err := restores(ctx, cfg); err != nil {
		return fmt.Errorf("%w\nlogs of the nodes: %s; try again with: go run ./jepsen restore --tasks %s --runs %d --seed %d", err, w.dir, *tasks, cfg.runs, cfg.seed)
	}
	return w.remove()
}

// restores makes the runs of every size, one after the other, and ends with the first
// that fails: its folder is left.
func restores(ctx context.Context, cfg restoreConfig) error {
	rng := rand.New(rand.NewSource(cfg.seed))
	for _, size := range cfg.sizes {
		file := filepath.Join(cfg.dir, fmt.Sprintf("backup-%d", size))
		if err := within(ctx, restoreFillMax, func(ctx context.Context) error { return makeBackup(ctx, cfg, size, file) }); err != nil {
			return fmt.Errorf("make a backup of %d tasks: %w", size, err)
		}
		count := restoreCount{}
		for n := 0; count.inside < cfg.runs; n++ {
			if n == restoreMissedMax*cfg.runs {
				return fmt.Errorf("%d tasks: only %d of %d restores were seen under way", size, count.inside, n)
			}
			r := restoreRun{restoreConfig: cfg, tasks: size, backup: file, part: rng.Float64()*(1+restoreBegun) - restoreBegun}
			if err := r.inFolder(ctx, fmt.Sprintf("%d-%d", size, n+1), rng.Int63()); err != nil {
				return fmt.Errorf("%d tasks, run %d: %w", size, n+1, err)
			}
			count.add(&r)
			fmt.Fprintf(cfg.out, "%d tasks, run %d: %s\n", size, n+1, &r)
		}
		fmt.Fprintf(cfg.out, "%d tasks: %s\n", size, count)
	}
	return nil
}

// restoreCount counts runs that passed.
type restoreCount struct{ inside, whole, nothing, missed int }

func (c *restoreCount) add(r *restoreRun) {
	switch {
	case r.missed:
		c.missed++
		return
	case r.whole:
		c.whole++
	default:
		c.nothing++
	}
	c.inside++
}

func (c restoreCount) String() string {
	return fmt.Sprintf("the leader was killed inside %d restores; the whole backup was there %d times, nothing of it %d times, the same on every node; %d were over before",
		c.inside, c.whole, c.nothing, c.missed)
}

// makeBackup writes a backup of a cluster with so many tasks to the file.
func makeBackup(ctx context.Context, cfg restoreConfig, tasks int, file string) error {
	dir := file + "-source"
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	c, err := procs.Start(ctx, procs.Config{Binary: cfg.binary, Dir: dir, Nodes: 1})
	if err != nil {
		return err
	}
	defer c.Close()
	if tasks > 0 {
		if err := fillNodes(ctx, scaleConfig{binary: cfg.binary, tasks: tasks, nodes: 1, out: cfg.out}, c); err != nil {
			return err
		}
	}
	if _, err := askClaimq(ctx, cfg.binary, c.URLs(), "snapshot", "save", file); err != nil {
		return err
	}
	c.Close()
	return os.RemoveAll(dir)
}

// errClaimq is returned when a command of the product did not end as it should.
var errClaimq = errors.New("claimq")

// askClaimq runs a command against the nodes and returns what it printed. It must
// succeed.
func askClaimq(ctx context.Context, binary string, urls []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "CLAIMQ_ENDPOINTS="+strings.Join(urls, ","))
	printed, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w %s: %w: %s", errClaimq, strings.Join(args, " "), err, printed)
	}
	return string(printed), nil
}
