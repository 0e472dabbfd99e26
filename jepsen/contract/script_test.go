package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// row is one promise of the contract and the steps that show it.
type row struct {
	file    string // its base name without .txt
	section string
	name    string
	says    string
	alone   bool
	steps   []step
}

// test is the row's name as a subtest of TestContract.
func (r row) test() string { return r.section + "/" + strings.ReplaceAll(r.name, " ", "_") }

// goesDown reports whether the row ends all nodes.
func (r row) goesDown() bool {
	return slices.ContainsFunc(r.steps, func(s step) bool { return s.down > 0 })
}

// step is one request or answer.
type step struct {
	line    int
	node    string // "leader", "follower", "" = the next one in turn
	name    string // of a request in the background, or of its answer
	method  string // "" if the step is no request
	target  string
	headers [][2]string
	status  int           // 0 if the step is no answer
	within  time.Duration // the request is repeated for this time
	before  time.Duration // bound of the answer's time; 0 = none
	down    time.Duration // all nodes are down for this time; 0 = another step
	body    string        // JSON, or a pattern of it; "" = none
}

var (
	headingLine = regexp.MustCompile(`^# (\d) ([^:(]+?)( \(alone\))?: (.+)$`)
	requestLine = regexp.MustCompile(`^(?:@(leader|follower) )?(?:&(\w+) )?(GET|POST|PATCH|DELETE|PUT) (/\S*)(?: (.*))?$`)
	answerLine  = regexp.MustCompile(`^(?:=(\w+) )?(?:(within|before) (\S+) )?(\d{3})(?: (.*))?$`)
	downLine    = regexp.MustCompile(`^down (\S+)$`)
	headerLine  = regexp.MustCompile(`^([A-Z][A-Za-z-]+): (.*)$`)
)

// readRows reads every script, in the order of the files' names.
func readRows(t *testing.T) []row {
	t.Helper()
	files, err := filepath.Glob("rows/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rows: %v", err)
	}
	var rows []row
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := parseRows(strings.TrimSuffix(filepath.Base(file), ".txt"), string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			if seen[r.test()] {
				t.Fatalf("%s: the row %s is there twice", file, r.test())
			}
			seen[r.test()] = true
			rows = append(rows, r)
		}
	}
	return rows
}

// parseRows reads one script.
func parseRows(file, text string) ([]row, error) {
	var rows []row
	var headers [][2]string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " ")
		where := fmt.Sprintf("%s.txt:%d", file, i+1)
		if line == "" {
			continue
		}
		if m := headingLine.FindStringSubmatch(line); m != nil {
			rows = append(rows, row{file: file, section: m[1], name: m[2], says: m[4], alone: m[3] != ""})
			continue
		}
		if len(rows) == 0 {
			return nil, fmt.Errorf("%s: %q stands before the first row", where, line)
		}
		r := &rows[len(rows)-1]
		if strings.HasPrefix(line, " ") && len(r.steps) > 0 {
			r.steps[len(r.steps)-1].body += line
			continue
		}
		if m := headerLine.FindStringSubmatch(line); m != nil {
			headers = append(headers, [2]string{m[1], m[2]})
			continue
		}
		s, err := parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if s.down > 0 && !r.alone {
			return nil, fmt.Errorf("%s: the nodes go down under rows that run at the same time", where)
		}
		s.line, s.headers, headers = i+1, headers, nil
		r.steps = append(r.steps, s)
	}
	return rows, nil
}

func parseStep(line string) (step, error) {
	if m := downLine.FindStringSubmatch(line); m != nil {
		d, err := time.ParseDuration(m[1])
		return step{down: d}, err
	}
	if m := requestLine.FindStringSubmatch(line); m != nil {
		return step{node: m[1], name: m[2], method: m[3], target: m[4], body: m[5]}, nil
	}
	if m := answerLine.FindStringSubmatch(line); m != nil {
		s := step{name: m[1], body: m[5]}
		if _, err := fmt.Sscan(m[4], &s.status); err != nil || m[2] == "" {
			return s, err
		}
		d, err := time.ParseDuration(m[3])
		if m[2] == "before" {
			s.before = d
		} else {
			s.within = d
		}
		return s, err
	}
	return step{}, fmt.Errorf("%q is no request, answer or header", line)
}
