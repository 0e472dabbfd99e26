package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// commandLine is a line of a page that calls claimq.
type commandLine struct {
	page    string
	line    int
	text    string
	args    []string // after "claimq"
	mention bool     // inside a sentence: it may leave out what the sentence does not discuss
}

var (
	fence      = regexp.MustCompile("^ *```(.*)$")
	inlineCode = regexp.MustCompile("`[^`]+`")
	// placeholder matches what pages write in place of a value.
	placeholder = regexp.MustCompile(`^(\$.*|[A-Z][A-Z0-9_-]*|\.\.\.)$`)
)

// commandLines returns the calls of claimq in a page: in fenced or indented blocks of code, and in code within the
// text.
func commandLines(page, text string) []commandLine {
	var found []commandLine
	add := func(i int, code string, mention bool) {
		for _, args := range claimqCalls(code) {
			found = append(found, commandLine{page: page, line: i + 1, text: code, args: args, mention: mention})
		}
	}
	lines := strings.Split(text, "\n")
	inFence, shell, prompts := false, false, false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := fence.FindStringSubmatch(line); m != nil {
			inFence = !inFence
			shell, prompts = m[1] == "sh" || m[1] == "console", m[1] == "console"
			continue
		}
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case inFence && !shell:
		case inFence || indented:
			if inFence {
				code = line
			}
			typed := regexp.MustCompile(`^(n[1-9])?\$ `).ReplaceAllString(code, "")
			if typed == code && (prompts || indented) {
				continue // output of a command
			}
			first := i
			for strings.HasSuffix(typed, `\`) && i+1 < len(lines) {
				i++
				typed = strings.TrimSuffix(typed, `\`) + strings.TrimSpace(lines[i])
			}
			if strings.HasPrefix(strings.TrimSpace(typed), "#") {
				continue
			}
			add(first, typed, false)
		default:
			for _, span := range inlineCode.FindAllString(line, -1) {
				if code := strings.Trim(span, "`"); strings.HasPrefix(code, "claimq ") || strings.Contains(code, " claimq ") {
					add(i, code, true)
				}
			}
		}
	}
	return found
}

// filled returns the arguments with valid values for what a page leaves open.
func (l *commandLine) filled(cmd *cobra.Command, args []string) []string {
	var filled []string
	flag := (*pflag.Flag)(nil)
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case flag != nil:
			arg, flag = fits(flag, arg), nil
		case strings.HasPrefix(arg, "--"):
			flag = cmd.Flags().Lookup(strings.TrimPrefix(name, "--"))
			switch {
			case flag == nil:
			case given:
				arg, flag = name+"="+fits(flag, value), nil
			case flag.NoOptDefVal != "":
				flag = nil
			}
		case arg == "..." && l.mention:
			continue
		case arg == "ID" || strings.HasPrefix(arg, "$"):
			arg = "1"
		}
		filled = append(filled, arg)
	}
	if flag != nil && l.mention { // the page mentions only its name
		filled[len(filled)-1] += "=" + fits(flag, "VALUE")
	}
	return filled
}

// fits returns the value. For a placeholder it returns a value that the flag accepts.
func fits(flag *pflag.Flag, value string) string {
	if !placeholder.MatchString(value) {
		return value
	}
	switch flag.Value.Type() {
	case "int", "int32", "int64", "uint", "uint64", "float64":
		return "1"
	case "duration":
		return "1s"
	}
	return value
}

// readCommandLines returns the calls of claimq in all pages.
func readCommandLines(t *testing.T) []commandLine {
	t.Helper()
	var found []commandLine
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/adr/*.md", "../../examples/*.md", "../../bench/*.md", "../../jepsen/*.md", "../../deploy/prometheus/*.yml"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, commandLines(strings.TrimPrefix(page, "../../"), string(text))...)
		}
	}
	return found
}

// Every call of claimq in a page uses an existing command and existing flags, with valid values and a valid number of
// arguments.
func TestPages_commandLines(t *testing.T) {
	t.Parallel()
	found := readCommandLines(t)
	mentions := 0
	for _, l := range found {
		if l.mention {
			mentions++
		}
		if err := l.check(); err != nil && l.text != signedFirst {
			t.Errorf("%s:%d: %s\n%v", l.page, l.line, l.text, err)
		}
	}
	if len(found) < 400 || mentions < 150 {
		t.Errorf("found %d calls, %d of them in text", len(found), mentions)
	}
}

// signedFirst is text in a code span of docs/formats.md that looks like a call.
const signedFirst = "claimq node 1"

// check checks the line against the command, without running it.
func (l *commandLine) check() error {
	if len(l.args) == 0 || placeholder.MatchString(l.args[0]) { // it stands for any command
		return nil
	}
	err := taken(l.args, l.filled)
	if err != nil && l.mention && strings.Contains(err.Error(), " is missing") {
		return nil
	}
	return err
}

// looking lists the commands that change nothing and end by themselves.
var looking = []string{
	"cluster hash", "cluster status", "cluster token list", "defaults", "events", "failures", "finalization show", "get", "key list", "list",
	"schedule get", "schedule list", "stats", "type get", "types", "version", "why", "workers",
}

// A node answers all those of a page's commands that only read.
func TestPages_commandLines_run(t *testing.T) {
	t.Parallel()
	c := newProcesses(t, 1, 0)
	c.start(c.Nodes...)
	c.submit(1)
	ran := map[string]bool{}
	for _, l := range readCommandLines(t) {
		text := strings.Join(l.args, " ")
		cmd, args, err := newTree().Find(l.args)
		if err != nil || ran[text] || !slices.Contains(looking, strings.TrimPrefix(cmd.CommandPath(), "claimq ")) || regexp.MustCompile(`--(follow|watch|wait|endpoint|config|ca-file|help|output (go|template))|FILE|\.\.\.`).MatchString(text) {
			continue
		}
		ran[text] = true
		args = append(strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "claimq")), l.filled(cmd, args)...)
		for i, arg := range args {
			switch arg {
			case "GROUP":
				args[i] = "0123456789abcdef"
			case "TIME":
				args[i] = "2026-01-02T15:04:05Z"
			}
		}
		var stdout, stderr bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Environ: []string{"CLAIMQ_ENDPOINTS=" + c.Nodes[0].URL()}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		code := run(ctx, a, args)
		cancel()
		missing := l.mention && strings.Contains(stderr.String(), " is missing")
		if code != term.ExitDone && code != term.ExitNone && !missing {
			t.Errorf("%s:%d: claimq %s: exit code %d\n%s", l.page, l.line, strings.Join(args, " "), code, stderr.String())
		}
	}
	if len(ran) < 40 {
		t.Errorf("ran only %d", len(ran))
	}
}
