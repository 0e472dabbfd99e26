package recipes

import (
	"regexp"
	"strings"
	"testing"
)

// step is a command of the page, or a directive in a comment that readers do not
// see.
type step struct {
	line    int    // of the command
	last    int    // the last line of the output
	machine string // "" is the operator's own
	command string
	printed string // output in the page; "..." stands for anything
	hidden  bool   // any output is right if it succeeds
}

var (
	promptPattern = regexp.MustCompile(`^(n[1-9])?\$ (.*)$`)
	hiddenPattern = regexp.MustCompile(`^<!-- test(?: on (n[1-9]))?: (.*?) -->$`)
)

// parsePage returns the steps of a page: in ```console blocks the text after a prompt with
// its continuation (after a backslash, or a here-document up to EOF), and the output below
// it; and also `<!-- test: COMMAND -->` and `<!-- test on n1: COMMAND -->`.
func parsePage(page string) []step {
	var steps []step
	var last *step
	inBlock, here := false, false
	for i, text := range strings.Split(page, "\n") {
		prompt, hidden := promptPattern.FindStringSubmatch(text), hiddenPattern.FindStringSubmatch(text)
		switch {
		case !inBlock && hidden != nil:
			steps = append(steps, step{line: i + 1, last: i + 1, machine: hidden[1], command: hidden[2], hidden: true})
		case !inBlock:
			inBlock = text == "```console"
			last = nil
		case text == "```":
			inBlock = false
		case here:
			last.command += "\n" + text
			last.last = i + 1
			here = text != "EOF"
		case prompt != nil:
			steps = append(steps, step{line: i + 1, last: i + 1, machine: prompt[1], command: prompt[2]})
			last = &steps[len(steps)-1]
			here = strings.Contains(last.command, "<<'EOF'")
		case last == nil:
		case strings.HasSuffix(last.command, `\`) && last.printed == "":
			last.command += "\n" + text
			last.last = i + 1
		default:
			last.printed += text + "\n"
			last.last = i + 1
		}
	}
	return steps
}

// Numbers, durations, times, identities and keys differ each time. A digit that stands
// alone is compared, because the number of nodes matters.
var vary = []struct {
	pattern *regexp.Regexp
	by      string
}{
	// The leader is chosen by chance, too.
	{regexp.MustCompile(`leader: n\d`), "leader: NODE"},
	{regexp.MustCompile(`\bterm: \d+`), "term: N"},
	{regexp.MustCompile(`\bn\d (leads,? (\d|alone))`), "NODE $1"},
	{regexp.MustCompile(`\b(leader|follower) +((non)?voter)\b`), "STATE $2"},
	{regexp.MustCompile(`(:74\d1) +\d+`), "$1 INDEX"},
	{regexp.MustCompile(` (dev|(v\S+-g)?[0-9a-f]{7,12}(-dirty)?) +ok\b`), " VERSION ok"}, // of the build
	{regexp.MustCompile(`\d\.\d+e\+\d+`), "NUMBER"},
	{regexp.MustCompile(`\b\d+-\d+-\d{10,}\b`), "SNAPSHOT"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`), "TIME"},
	{regexp.MustCompile(`\d{8}T\d{6}Z-\d+`), "TIME-INDEX"}, // of a regular backup
	{regexp.MustCompile(`\b[0-9a-f]{16,}\b`), "HEX"},
	{regexp.MustCompile(`(?m)(^|\btoken )[0-9a-f]{12}\b`), "${1}TOKEN"},
	{regexp.MustCompile(`short buffer|checksum mismatch`), "DAMAGE"}, // depends on where in an entry a byte is flipped
	{regexp.MustCompile(`\bclaimq_[a-z0-9]{40,}`), "KEY"},
	{regexp.MustCompile(`\b[A-Z2-7]{26}\b`), "MADE-UP"}, // the client's keys
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|ms|s|m|h))+\b`), "SPAN"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(B|KiB|MiB|GiB|bytes)\b`), "SIZE"},
	{regexp.MustCompile(`\b\d[\d,]*\d\b`), "NUMBER"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`-{3,}`), "---"},
	{regexp.MustCompile(` +\n`), "\n"},
}

// plain returns the text without the parts that vary.
func plain(text string) string {
	text = strings.TrimRight(text, "\n ") + "\n"
	for _, v := range vary {
		text = v.pattern.ReplaceAllString(text, v.by)
	}
	return text
}

// prints reports whether the step printed what the page shows.
func (s *step) prints(out string) bool {
	parts := strings.Split(plain(s.printed), "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`).MatchString(plain(out))
}

// Commands and their output are told apart, and parts that vary are not compared.
func TestParsePage(t *testing.T) {
	t.Parallel()
	steps := parsePage(strings.Join([]string{
		"text", "<!-- test on n2: die -->", "```console", "$ claimq cluster status", "leader: n1   term: 12", "", "n1  voter", "n3$ cat > f <<'EOF'", "$ not a prompt", "EOF",
		"$ a \\", "  b", "```", "$ no command", "```yaml", "$ nor this", "```",
	}, "\n"))
	if len(steps) != 4 {
		t.Fatalf("%d steps: %+v", len(steps), steps)
	}
	if s := steps[0]; !s.hidden || s.machine != "n2" || s.command != "die" {
		t.Errorf("the directive: %+v", s)
	}
	s := steps[1]
	for out, want := range map[string]bool{
		"leader: n2   term: 5\n\nn1 voter\n":     true,
		"leader: none term: 57\n\nn1 voter\n":    false,
		"leader: n1   term: 57\n\nn1 nonvoter\n": false,
		"":                                       false,
	} {
		if s.prints(out) != want {
			t.Errorf("%q: %v", out, !want)
		}
	}
	if s := steps[2]; s.machine != "n3" || s.command != "cat > f <<'EOF'\n$ not a prompt\nEOF" {
		t.Errorf("the here-document: %+v", s)
	}
	if s := steps[3]; s.command != "a \\\n  b" || s.printed != "" {
		t.Errorf("the continued command: %+v", s)
	}
	some := step{printed: "3 nodes\n...\nend\n"}
	if !some.prints("3 nodes\nx\ny\nend\n") || some.prints("4 nodes\nx\nend") {
		t.Error("what ... stands for")
	}
}
