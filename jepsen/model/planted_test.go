package model

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// plantedLogs bounds the logs for a planted bug.
const plantedLogs = 1000

// tested lists the bugs that tests find which know what the model does not, or aim at what is
// rare in its logs.
var tested = map[string]struct{ pkg, test string }{
	"extend that crosses an expiry":               {"cluster/lease", "TestTimers_NoteExpired"},
	"lease a millisecond short":                   {"cluster/lease", "TestTimers_neverEarly"},
	"late complete of a claim before the last":    {"fsm", "TestScripts/complete_late"},
	"leases by the calendar":                      {"cluster/lease", "TestClock"},
	"new weight waits for the turn of the old":    {"fsm", "TestTurns_Weights"},
	"overlap not looked at":                       {"fsm", "TestScripts/schedules_overlap"},
	"paused share claimed from by a run":          {"fsm", "TestScripts/claim_runs"},
	"refused batch takes turns":                   {"fsm", "TestTurns_GoOn"},
	"share that opens has a tag before the clock": {"fsm", "TestTurns_Reopened"},
	"second signal counts":                        {"fsm", "TestScripts/signal"},
	"slot left out":                               {"internal/cron", "TestPlan_Every"},
	"snapshot without turns":                      {"fsm", "TestTurns_GoOn"},
	"turn not spent":                              {"fsm", "TestTurns_GoOn"},
	"weights ignored":                             {"fsm", "TestTurns_Weights"},
	"slot run again once its schedule is set":     {"fsm", "TestSchedules_ReplacedDoNotGoBack"},
}

// drawn lists the bugs for which the logs are drawn from a seed other than 1, which would take
// too long to find them.
var drawn = map[string]uint64{
	"cancelled move goes on":                          14,
	"claim by id past the limits":                     6,
	"finalized before the steps have ended":           3,
	"finalized while another holds it":                8,
	"move ahead of its rate":                          3,
	"refused batch keeps its tokens":                  11,
	"refused batch leaves a count of steps":           3,
	"removed task without its key":                    9,
	"repeated completion claims again":                14,
	"retried claim takes a second task":               9,
	"retry of a parent leaves a step":                 3,
	"retry of a parent that is not all or nothing":    4,
	"retried parent stuck whose steps have completed": 20,
	"revived head beside a claim of its group":        4,
	"run of a group past a limit":                     10,
	"run past a task that waits for its time":         20,
	"slot run twice, its version not checked":         14,
	"snapshot without request ids":                    9,
	"two finalizers both do it":                       11,
}

// ofParents lists the bugs that logs about parents find, while those about tasks do not, or
// find late; logs about tasks find all others of the rules.
var ofParents = []string{
	"added step forgets the dependencies that it has",
	"cascade not transitive",
	"claim by id past the limits",
	"finalization claim ends early",
	"finalization claim kept by the dead",
	"finalization claim without its margin",
	"finalized before the steps have ended",
	"finalized while another holds it",
	"parent ends before an added step",
	"retried parent stuck whose steps have completed",
	"retry of a parent leaves a step",
	"retry of a parent that is not all or nothing",
	"revived head beside a claim of its group",
	"steps added twice",
	"two finalizers both do it",
}

// Each planted bug is found, and none is found if none is switched on.
func TestPlanted(t *testing.T) {
	t.Parallel()
	root, err := procs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	binaries := buildPlanted(t, root)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		for _, about := range []string{"tasks", "parents"} {
			if out, err := runPlanted(t, binaries["fsm"], "none", drawnFrom(about, 1, 50)); err != nil {
				t.Fatalf("logs about %s fail without a bug (%v)\n%s", about, err, out[:min(len(out), 2000)])
			}
		}
		for name, by := range tested {
			if out, err := runPlanted(t, binaries[by.pkg], "none", only(by.test)); err != nil {
				t.Fatalf("the test for %q fails without a bug (%v)\n%s", name, err, out[:min(len(out), 2000)])
			}
		}
	})
	failure := regexp.MustCompile(`--- FAIL: (Test\S+) .*\n( +[^- ].{0,200})`)
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			start, about := time.Now(), "tasks"
			if slices.Contains(ofParents, p.name) {
				about = "parents"
			}
			binary, run := binaries["fsm"], drawnFrom(about, max(1, drawn[p.name]), plantedLogs)
			if by, ok := tested[p.name]; ok {
				binary, run = binaries[by.pkg], only(by.test)
			}
			out, err := runPlanted(t, binary, p.name, run)
			found := failure.FindSubmatch(out)
			if err == nil || found == nil {
				t.Fatalf("not found by %v (%v)\n%s", run, err, out[:min(len(out), 2000)])
			}
			t.Logf("found by %s in %.1f s: %s", found[1], time.Since(start).Seconds(), found[2])
		})
	}
}

// only runs one test, or one of its subtests.
func only(test string) []string {
	name, sub, _ := strings.Cut(test, "/")
	return []string{"-test.run=^" + name + "$/^" + sub}
}

// drawnFrom runs the model along that many logs of a seed of rapid, about tasks or parents.
func drawnFrom(about string, seed uint64, logs int) []string {
	return []string{"-test.run=^TestMachine_MatchesModel$/^" + about + "$", fmt.Sprintf("-rapid.seed=%d", seed), fmt.Sprintf("-rapid.checks=%d", logs), "-rapid.nofailfile", "-rapid.shrinktime=0s"}
}

// runPlanted runs a test binary with one bug switched on, in its package's folder.
func runPlanted(t *testing.T, binary testBinary, bug string, args []string) ([]byte, error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), binary.path, args...)
	child.Dir, child.Env = binary.dir, append(os.Environ(), "PLANTED_BUG="+bug)
	return child.CombinedOutput()
}

// switches is added to each package with bugs: it says which of them is on.
const switches = `package %s

import (
	"os"
	"time"
)

var plantedBug = os.Getenv("PLANTED_BUG")

func isPlanted(bug string) bool { return bug == plantedBug }

func ifPlanted[T any](bug string, bad, good T) T {
	if isPlanted(bug) {
		return bad
	}
	return good
}

func wallClock() int64 { return time.Now().UnixMicro() }

var _ = wallClock
var _ = ifPlanted[int]
`

// testBinary is the tests of a package with all bugs.
type testBinary struct{ path, dir string }

// buildPlanted builds the tests that find bugs with all the bugs, and returns them by package.
func buildPlanted(t *testing.T, root string) map[string]testBinary {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{} // for the overlay: a source's path and its replacement
	texts := map[string]string{}   // by a source's path
	for _, p := range planted {
		words := strings.NewReplacer("$on", fmt.Sprintf("isPlanted(%q)", p.name), "$if(", fmt.Sprintf("ifPlanted(%q, ", p.name))
		for _, e := range p.edits {
			path := filepath.Join(root, filepath.FromSlash(e.file))
			if _, ok := texts[path]; !ok {
				texts[path] = sourceOf(t, path)
			}
			if n := strings.Count(texts[path], e.old); n != 1 {
				t.Fatalf("%s: the source has moved on: %s has this %d times, not once:\n%s", p.name, e.file, n, e.old)
			}
			texts[path] = strings.Replace(texts[path], e.old, words.Replace(e.new), 1)
			texts[filepath.Join(filepath.Dir(path), "planted_switches.go")] = fmt.Sprintf(switches, filepath.Base(filepath.Dir(path)))
		}
	}
	for path, text := range texts {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	binaries := map[string]testBinary{}
	for _, pkg := range []string{"fsm", "cluster/lease", "internal/cron"} {
		binary := testBinary{filepath.Join(dir, filepath.Base(pkg)+".test"), filepath.Join(root, filepath.FromSlash(pkg))}
		build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary.path, "./"+pkg)
		build.Dir, build.Env = root, procs.Environ()
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", pkg, err, out)
		}
		binaries[pkg] = binary
	}
	return binaries
}

func sourceOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
