package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guideCommand is a command in a guide, with the output that the guide shows.
type guideCommand struct {
	line    int
	command string
	printed []string // "..." stands for anything
}

// guideCommands returns the commands in the page's indented blocks: the text after "$ ", and a here-document up to
// EOF.
func guideCommands(page string) []guideCommand {
	var commands []guideCommand
	var last *guideCommand
	here := false
	for i, line := range strings.Split(page, "\n") {
		text, indented := strings.CutPrefix(line, "    ")
		command, isCommand := strings.CutPrefix(text, "$ ")
		switch {
		case here:
			last.command += "\n" + text
			here = text != "EOF"
		case indented && isCommand:
			commands = append(commands, guideCommand{line: i + 1, command: command})
			last = &commands[len(commands)-1]
			here = strings.Contains(command, "<<'EOF'")
		case indented && last != nil:
			last.printed = append(last.printed, text)
		case line == "" && last != nil: // inside the output, or its end
			last.printed = append(last.printed, "")
		default:
			last = nil
		}
	}
	for i := range commands {
		printed := strings.TrimRight(strings.Join(commands[i].printed, "\n"), "\n")
		commands[i].printed = strings.Split(printed, "\n")
	}
	return commands
}

// prints reports whether out matches what the guide shows.
func (c *guideCommand) prints(out string) bool {
	parts := strings.Split(strings.Join(c.printed, "\n"), "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`).MatchString(strings.TrimRight(out, "\n"))
}

// The commands of the guide to steps run unchanged against a new cluster and print what the guide shows.
func TestGuide_Steps(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/steps.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := guideCommands(string(page))
	if len(commands) < 20 {
		t.Fatalf("found only %d commands", len(commands))
	}
	d := startDev(t)
	dir := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "claimq")); err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), beClaimq+"=1", "CLAIMQ_ENDPOINTS="+d.url(0)+","+d.url(1), "PATH="+dir+":"+os.Getenv("PATH"))
	for i := range commands {
		c := &commands[i]
		line := strings.ReplaceAll(strings.ReplaceAll(c.command, ":7400", fmt.Sprintf(":%d", d.port)), ":7410", fmt.Sprintf(":%d", d.port+10))
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = dir, environ
		out, _ := cmd.CombinedOutput() // some are refused, as the guide shows
		if !c.prints(string(out)) {
			t.Fatalf("docs/steps.md:%d: %s\n-guide +printed\n%s", c.line, c.command, cmp.Diff(strings.Join(c.printed, "\n"), string(out)))
		}
	}
}

// The Go code in the guide comes from the examples, which other tests run.
func TestGuide_StepsGo(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/steps.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("../../client/example_steps_test.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(examples)) {
		known[strings.TrimSpace(line)] = true
	}
	lines := 0
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			lines++
			if !known[strings.TrimSpace(line)] {
				t.Errorf("no example has the line %q", line)
			}
		}
	}
	if lines < 8 {
		t.Errorf("found only %d lines of Go", lines)
	}
}
