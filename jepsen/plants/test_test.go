package plants

import (
	"regexp"
	"slices"
	"testing"

	"github.com/claimq/claimq/internal/procs"
)

// What go test prints names the tests that failed, and the seeds of the soak, whether
// they were judged or a node ended the process.
func TestFailed_isRead(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		pattern *regexp.Regexp
		out     string
		want    []string
	}{
		{"a test", testFailed, "=== RUN TestA\n--- FAIL: TestA (0.01s)\n    --- FAIL: TestA/part (0.00s)\nFAIL\n", []string{"TestA"}},
		{"none", testFailed, "ok  \tcluster\t0.1s\n", nil},
		{"a seed", seedFailed, "--- FAIL: TestSoak (3.1s)\n    --- FAIL: TestSoak/seeds (0.0s)\n        --- FAIL: TestSoak/seeds/17 (1.2s)\n", []string{"17"}},
		{"a node that ended itself", seedFailed, "panic: TestSoak/seeds/4: node n1 ends itself: it differs\n\ngoroutine 7 [running]:\n", []string{"4"}},
		{"a seed that passed", seedFailed, "        --- PASS: TestSoak/seeds/17 (1.2s)\n", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, match := range c.pattern.FindAllStringSubmatch(c.out, -1) {
				got = append(got, match[1])
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// An unknown line of a plant is an error, so that no plant changes less than it says.
func TestParse_refuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"faults kill-one\n",
		"plant a: b\nfault kill-one\n",
		"plant a: b\n-x\n",
		"plant a: b\nin f.go\n*x\n",
		"plant a: b\nload many\n",
		"plant a: b\nreaders many\n",
	} {
		if plants, err := parse(text); err == nil {
			t.Errorf("%q gives %+v, want an error", text, plants)
		}
	}
	plants, err := parse("# of a\n\nplant a: b\nreaders 120\nin f.go\n x\n-y\n+z\n")
	if err != nil || len(plants) != 1 || plants[0].Readers != 120 || plants[0].edits[0] != (procs.Edit{File: "f.go", Old: "x\ny\n", New: "x\nz\n"}) {
		t.Errorf("%+v, %v", plants, err)
	}
}
