package sim

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

	"github.com/claimq/claimq/jepsen/procs"
)

const (
	// plantedSeeds bounds the seeds for a planted bug, plantedLogs the logs of package fsm's
	// tests.
	plantedSeeds = 5000
	plantedLogs  = 100
)

// simulated lists the bugs that runs of the simulator find, with the first seed to try,
// because without it hundreds of seeds would be tried in vain. The others are in the rules,
// and the model finds them along the logs that package fsm's tests draw.
var simulated = map[string]uint64{
	"leases by the calendar":                     1,
	"restore that keeps old state":               1,
	"lease dropped at failover":                  1,
	"slot left out":                              1,
	"slot run again once its schedule is set":    1,
	"overlap not looked at":                      1,
	"one wall clock moves the calendar":          70,
	"U starts at the state's":                    550,
	"hint of a leader that another one followed": 5400,
	"time without a leader counts":               1,
	"found: lease a millisecond short":           1,
	"found: extend that crosses an expiry":       300,
}

// drawn lists the bugs for which the logs are drawn from a seed other than 1, which would take
// too long to find them.
var drawn = map[string]uint64{
	"claim by id past the limits":                     3,
	"finalized before the steps have ended":           3,
	"finalized while another holds it":                8,
	"refused batch keeps its tokens":                  11,
	"refused batch leaves a count of steps":           3,
	"removed task without its key":                    9,
	"repeated completion claims again":                14,
	"retried claim takes a second task":               9,
	"retry of a parent leaves a step":                 3,
	"retry of a parent that is not all or nothing":    4,
	"retried parent stuck whose steps have completed": 20,
	"revived head beside a claim of its group":        4,
	"slot run twice, its version not checked":         14,
	"snapshot without request ids":                    9,
	"two finalizers both do it":                       11,
}

// ofParents lists the bugs that logs about parents find, while those about tasks do not, or
// find late; logs about tasks find all others of the rules.
var ofParents = []string{
	"cascade not transitive",
	"claim by id past the limits",
	"finalization claim ends early",
	"finalization claim kept by the dead",
	"finalization claim without its margin",
	"finalized before the steps have ended",
	"finalized while another holds it",
	"retried parent stuck whose steps have completed",
	"retry of a parent leaves a step",
	"retry of a parent that is not all or nothing",
	"revived head beside a claim of its group",
	"two finalizers both do it",
}

// Each planted bug is found, and none is found if none is switched on. The log names the seed
// or the number of logs, and the time.
func TestPlanted(t *testing.T) {
	t.Parallel()
	binary := buildPlanted(t, moduleRoot(t))
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		for _, run := range [][]string{simulatedFrom(1, 50), drawnFrom("tasks", 1, 50), drawnFrom("parents", 1, 50)} {
			if out, err := runPlanted(t, binary, "none", run); err != nil {
				t.Fatalf("%v fails without a bug (%v)\n%s", run, err, out[:min(len(out), 2000)])
			}
		}
	})
	failure := regexp.MustCompile(`(?m)^    --- FAIL: TestMachine_MatchesModel(?:Simulated)?/(\w+) .*\n(.{0,200})`)
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			start, about := time.Now(), "tasks"
			if slices.Contains(ofParents, p.name) {
				about = "parents"
			}
			run := drawnFrom(about, max(1, drawn[p.name]), plantedLogs)
			if first := simulated[p.name]; first > 0 {
				run = simulatedFrom(first, plantedSeeds)
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

// simulatedFrom runs that many seeds of the simulator, beginning with first; drawnFrom runs
// the model along that many logs of a seed of rapid, about tasks or parents.
func simulatedFrom(first uint64, seeds int) []string {
	return []string{"-test.run=^TestMachine_MatchesModelSimulated$", fmt.Sprintf("-simulated.first=%d", first), fmt.Sprintf("-simulated.seeds=%d", seeds)}
}

func drawnFrom(about string, seed uint64, logs int) []string {
	return []string{"-test.run=^TestMachine_MatchesModel$/^" + about + "$", fmt.Sprintf("-rapid.seed=%d", seed), fmt.Sprintf("-rapid.checks=%d", logs), "-rapid.nofailfile", "-rapid.shrinktime=0s"}
}

// runPlanted runs tests of package fsm with one bug switched on.
func runPlanted(t *testing.T, binary, bug string, args []string) ([]byte, error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), binary, args...)
	child.Env = append(os.Environ(), "PLANTED_BUG="+bug)
	return child.CombinedOutput()
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
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

// buildPlanted builds the tests of package fsm with all the bugs and returns their path.
func buildPlanted(t *testing.T, root string) string {
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
	binary := filepath.Join(dir, "fsm.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./fsm")
	build.Dir, build.Env = root, procs.Environ()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func sourceOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
