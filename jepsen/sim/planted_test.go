package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// plantedSeeds is how many seeds a planted bug may take at most.
const plantedSeeds = 5000

// plantedFrom is the first seed that is tried for a bug which none finds before: hundreds
// would be tried for nothing.
var plantedFrom = map[string]uint64{
	"hint of a leader that another one followed":      4670,
	"retry of a parent that is not all or nothing":    250,
	"U starts at the state's":                         220,
	"slot run twice, its version not checked":         151,
	"retried parent stuck whose steps have completed": 95,
	"refused batch leaves a count of steps":           83,
}

// Each planted bug is found, and none if none is switched on: by what the simulator
// checks, or by the model of package fsm along its logs. The log tells how many seeds and
// how long it took.
func TestPlanted(t *testing.T) {
	t.Parallel()
	binary := buildPlanted(t, moduleRoot(t))
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		if out, err := runPlanted(t, binary, "none", 1, 50); err != nil {
			t.Fatalf("a seed fails without a bug (%v)\n%s", err, out[:min(len(out), 2000)])
		}
	})
	failure := regexp.MustCompile(`(?m)^    --- FAIL: TestMachine_MatchesModelSimulated/seed_(\d+) .*\n(.*)$`)
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			out, err := runPlanted(t, binary, p.name, max(1, plantedFrom[p.name]), plantedSeeds)
			found := failure.FindSubmatch(out)
			if err == nil || found == nil {
				t.Fatalf("not found in %d seeds (%v)\n%s", plantedSeeds, err, out[:min(len(out), 2000)])
			}
			t.Logf("found by seed %s in %.1f s: %s", found[1], time.Since(start).Seconds(), found[2])
		})
	}
}

// runPlanted runs so many seeds, from one on, with one bug switched on.
func runPlanted(t *testing.T, binary, bug string, from uint64, seeds int) ([]byte, error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), binary, "-test.run", "^TestMachine_MatchesModelSimulated$",
		fmt.Sprintf("-simulated.first=%d", from), fmt.Sprintf("-simulated.seeds=%d", seeds))
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

// switches is what each package with bugs has beside: which of them is on.
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
	replace := map[string]string{} // of the overlay: a source's path to that of what is read in its place
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
