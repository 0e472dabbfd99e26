package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/plants"
)

// Errors of commands.
var (
	// errFails is returned when a run does not pass.
	errFails = errors.New("the run fails")
	// errUsage is returned for a command line that makes no sense.
	errUsage = errors.New("usage")
)

// command is a command of jepsen.
type command struct {
	name, args string
	run        func(ctx context.Context, c *call) error
}

// call is a call of a command: its flags, and the folder and nodes of its run.
type call struct {
	command
	*flag.FlagSet
	out  io.Writer
	line []string // after the name

	binary string // path of claimq; "" before open: it is built
	dir    string // for data, logs and other files; exists after open
	nodes  int    // of with
	seed   int64
	plant  string // the bug that claimq is built with
	keep   bool   // the folder was named by the caller, or should be left
}

// newCall returns the call of a command whose flags are not defined yet.
func newCall(cmd command, line []string, out io.Writer) *call {
	return &call{command: cmd, FlagSet: flag.NewFlagSet(cmd.name, flag.ContinueOnError), out: out, line: line, nodes: 3}
}

// onNodes defines the flags of a command that starts nodes. plant is the bug to build with;
// that is claimq's if plant is c's.
func (c *call) onNodes(plant *string) {
	c.StringVar(&c.binary, "binary", "", "the claimq binary; built if not given")
	c.StringVar(plant, "plant", "", "build what is tried with this bug in it, which the run must then find")
	c.Int64Var(&c.seed, "seed", time.Now().Unix(), "of all that is chosen at random")
}

// leaving defines the flags of a command that leaves its recordings.
func (c *call) leaving() {
	c.StringVar(&c.dir, "out", "", "folder for what is recorded; a new one if not given")
	c.keep = true
}

// parse reads the flags and fails unless ok says that they make sense.
func (c *call) parse(ok func() bool) error {
	if err := c.Parse(c.line); err != nil {
		return err
	}
	if ok != nil && !ok() {
		return fmt.Errorf("%w: go -C jepsen run . %s %s", errUsage, c.name, c.args)
	}
	return nil
}

// begin calls parse and open.
func (c *call) begin(ctx context.Context, ok func() bool) error {
	if err := c.parse(ok); err != nil {
		return err
	}
	return c.open(ctx)
}

// open creates the folder, and builds the binary into it unless there is one.
func (c *call) open(ctx context.Context) (err error) {
	if c.dir == "" {
		c.dir, err = os.MkdirTemp("", "claimq-"+c.name+"-")
	} else {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil || c.binary != "" {
		return err
	}
	p, err := plants.ByName(c.plant)
	if err == nil {
		c.binary, err = p.Build(ctx, c.dir)
	}
	return err
}

// finding is the result of a run.
type finding interface {
	fmt.Stringer
	// OK reports whether the run passes.
	OK() bool
}

// show prints the report of a run that ended with err, and returns an error unless it
// passes.
func (c *call) show(r finding, err error) error {
	fmt.Fprintf(c.out, "\n%s", r)
	if err == nil && !r.OK() {
		err = errFails
	}
	return err
}

// end prints the report of a run, if any, and removes the folder of one that passes.
// Otherwise it prints where the folder is and how to repeat the run.
func (c *call) end(r finding, err error) error {
	if r != nil {
		err = c.show(r, err)
	}
	if err != nil {
		return fmt.Errorf("%w\nwhat it left: %s; try again with: %s", err, c.dir, c.again())
	}
	if c.keep {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// again returns the command line that repeats the run.
func (c *call) again() string {
	line := []string{"go -C jepsen run .", c.name}
	c.VisitAll(func(f *flag.Flag) {
		if value := f.Value.String(); f.Name == "seed" || value != f.DefValue && f.Name != "out" && f.Name != "binary" {
			line = append(line, fmt.Sprintf("--%s=%s", f.Name, value))
		}
	})
	return strings.Join(line, " ")
}

// with calls do with its own nodes, if the flags make sense.
func (c *call) with(ctx context.Context, ok func() bool, do func(*procs.Cluster) error, nodeFlags ...string) error {
	if err := c.begin(ctx, ok); err != nil {
		return err
	}
	cluster, err := procs.Start(ctx, procs.Config{Binary: c.binary, Dir: c.dir, Nodes: c.nodes, Flags: nodeFlags})
	if err == nil {
		err = do(cluster)
		cluster.Close()
	}
	return c.end(nil, err)
}

// startTimeout bounds the start of a cluster.
const startTimeout = 30 * time.Second
