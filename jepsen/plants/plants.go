package plants

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/jepsen/faults"
)

// Plant is a bug.
type Plant struct {
	Name string
	What string // in a sentence
	// Faults bring it to light, on Nodes nodes, separated by commas.
	Faults string
	// Clients and Rate are more than usual where it takes many; 0 = as usual.
	Clients, Rate int
	// Readers is the number of connections with heavy reads if it takes more than usual;
	// 0 = as usual.
	Readers int
	// Operations says that a run of package operations brings it to light.
	Operations bool
	// Row is the row of the contract that shows the bug, of Rules.
	Row string
	// Test, if not "", are tests of Package that find it, too: of what happens within too
	// short a time for a run to hit it always, or what no caller of a run does.
	Test, Package string
	// Soak, if not "", is the mix of faults with which the soak of package cluster finds
	// it, from seed 1 on.
	Soak  string
	edits []procs.Edit
	// program is built with the bug; "" means claimq.
	program string
}

// worker is the program of package workers.
const worker = "jepsen/workers/worker"

// Nodes is the number of nodes in a run that should find a bug.
const Nodes = 3

// All returns the bugs. Package jepsen/model has further ones, of the state machine.
func All() []Plant { return parsed("catalog.txt") }

// Rules returns bugs in what the contract promises: its rows must see them, no fault is
// needed. Row names the one that is run.
func Rules() []Plant { return parsed("rules.txt") }

// Workers returns bugs of the worker process of package workers.
func Workers() []Plant {
	all := parsed("workers.txt")
	for i := range all {
		all[i].program = worker
	}
	return all
}

// Served returns bugs of claimq work --serve, which runs of package workers find whose workers are
// so.
func Served() []Plant { return parsed("served.txt") }

// DroppedWrite returns the bug by which what counts tasks is shown to be able to fail. It
// is no part of All, as a run and the demo find it.
func DroppedWrite() Plant { return parsed("dropped.txt")[0] }

// ByName returns the plant of All with the name; "" is claimq without a plant.
func ByName(name string) (Plant, error) { return named(append(All(), Plant{}), name) }

// WorkerByName returns the plant of Workers with the name; "" is the worker without a plant.
func WorkerByName(name string) (Plant, error) {
	return named(append(Workers(), Plant{program: worker}), name)
}

// ServedByName returns the plant of Served with the name; "" is claimq without a plant.
func ServedByName(name string) (Plant, error) { return named(append(Served(), Plant{}), name) }

func named(plants []Plant, name string) (Plant, error) {
	for _, p := range plants {
		if p.Name == name {
			return p, nil
		}
	}
	return Plant{}, fmt.Errorf("no plant is called %q", name)
}

// edited is the source with the bug.
func (p Plant) edited() procs.Edited {
	return procs.Edited{Name: p.Name, Program: p.program, Edits: p.edits}
}

// Build builds the binary with the bug into dir and returns its path. It is to
// be called inside the module. Errors: procs.ErrGone, wrapped, or the build's.
func (p Plant) Build(ctx context.Context, dir string) (string, error) {
	return p.edited().Build(ctx, dir, "-tags", faults.BuildTag)
}

// RunTest runs the plant's tests with the bug in, and returns the names of those
// that fail.
func (p Plant) RunTest(ctx context.Context, dir string) (failed []string, err error) {
	return p.test(ctx, dir, testFailed, p.Package, "-run", p.Test)
}

// soakSeeds bounds the seeds that RunSoak tries: two virtual minutes each, an hour of
// two processors in all.
const soakSeeds = 3600

// RunSoak runs the soak with the bug in until a seed fails, and returns the seeds that
// failed.
func (p Plant) RunSoak(ctx context.Context, dir string) (failed []string, err error) {
	return p.test(ctx, dir, seedFailed, "cluster", "-run", "^TestSoak$", "-timeout", "0",
		"-soak.seeds", strconv.Itoa(soakSeeds), "-soak.virtual", "2m", "-soak.stop", "-soak.mix", p.Soak)
}

// What tells of a test that failed, and of a seed of the soak, whose node may also have
// ended the process.
var (
	testFailed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	seedFailed = regexp.MustCompile(`(?m)^(?: *--- FAIL: |panic: .*)TestSoak/seeds/(\d+)`)
)

// test runs the tests of a folder with the bug in, and returns what the pattern finds in
// their output.
func (p Plant) test(ctx context.Context, dir string, pattern *regexp.Regexp, folder string, args ...string) (found []string, err error) {
	root, err := procs.Root(ctx)
	if err != nil {
		return nil, err
	}
	overlay, err := p.edited().Overlay(root, dir)
	if err != nil {
		return nil, fmt.Errorf("plant %s: %w", p.Name, err)
	}
	module, pkg := procs.ModuleOf(root, folder)
	test := exec.CommandContext(ctx, "go", append([]string{"test", "-overlay", overlay, pkg}, args...)...)
	test.Dir, test.Env = module, procs.Environ()
	if module == root {
		test.Env = append(test.Env, proof.Env+"=1")
	} else { // tests of the laboratory start claimq, and have long forms
		binary, err := p.edited().Build(ctx, dir)
		if err != nil {
			return nil, err
		}
		test.Env = append(test.Env, procs.BuiltEnv+"="+binary)
	}
	out, err := test.CombinedOutput()
	for _, match := range pattern.FindAllSubmatch(out, -1) {
		found = append(found, string(match[1]))
	}
	if err != nil && len(found) == 0 {
		return nil, fmt.Errorf("plant %s: test it: %w\n%s", p.Name, err, out)
	}
	return found, nil
}
