package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newTree is the command tree of a process without anything.
func newTree() *cobra.Command {
	return newRootCommand(&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard})
}

const (
	cliPage  = "../../docs/cli.md"
	cliBegin = "<!-- made of the commands: go test ./cmd/claimq -run CLIPage -update -->\n"
)

// docs/cli.md has every command with its flags and examples, as they are. What stands
// above the line that says so is written by hand.
func TestCLIPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	byHand, _, found := strings.Cut(string(page), cliBegin)
	if !found {
		t.Fatalf("%s has no line %q", cliPage, cliBegin)
	}
	want := byHand + cliBegin + cliReference(newTree())
	if *updateGolden {
		if err := os.WriteFile(cliPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("it is not what the commands are (go test -update writes it), -want +got\n%s", diff)
	}
}

// cliReference lists the commands, and then describes them.
func cliReference(root *cobra.Command) string {
	var list, b strings.Builder
	plain, _, err := root.Find([]string{"get"}) // has no flags but those of all
	if err != nil {
		panic(err)
	}
	eachCommand(root, func(cmd *cobra.Command, path string) {
		if path == "" || !documented(cmd, path) {
			return
		}
		if !cmd.HasAvailableSubCommands() {
			fmt.Fprintf(&list, "| [%s](#claimq-%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), cmd.Short)
			writeCommand(&b, cmd, plain)
		}
	})
	return "\n## The commands\n\n| command | does |\n| --- | --- |\n" + list.String() + "\n### Flags of every command that asks a server\n\n```\n" +
		flagLines(plain, nil) + "```\n" + b.String()
}

// flagLines are the flags that the command has beside the others, a line each.
func flagLines(cmd, others *cobra.Command) string {
	known := map[string]bool{}
	if others != nil {
		for _, f := range flagsOf(others) {
			known[flagLine(f)] = true
		}
	}
	var rows [][]string
	for _, f := range flagsOf(cmd) {
		if name, usage := flagText(f); !known[flagLine(f)] {
			rows = append(rows, []string{name, usage})
		}
	}
	var b strings.Builder
	_ = columns(&b, rows)
	return b.String()
}

func flagLine(f *pflag.Flag) string {
	name, usage := flagText(f)
	return name + " " + usage
}

func writeCommand(b *strings.Builder, cmd, plain *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	// What is indented is a block of its own already; <...> would be taken for a tag.
	text = strings.ReplaceAll(regexp.MustCompile(`(?m)^  `).ReplaceAllString(text, "    "), "<", "&lt;")
	fmt.Fprintf(b, "\n### %s\n\n    %s\n\n%s\n", cmd.CommandPath(), cmd.UseLine(), text)
	if lines := flagLines(cmd, plain); lines != "" {
		fmt.Fprintf(b, "\n```\n%s```\n", lines)
	}
	fmt.Fprintf(b, "\n```sh\n%s\n```\n", regexp.MustCompile(`(?m)^  `).ReplaceAllString(cmd.Example, ""))
}

// Every example is a command line that is taken: its flags there are, and its
// arguments are as many as the command wants.
func TestExamples_areTaken(t *testing.T) {
	t.Parallel()
	examples := 0
	eachCommand(newTree(), func(cmd *cobra.Command, path string) {
		own := false
		for _, args := range claimqCalls(t, cmd.Example) {
			examples++
			root := newTree()
			found, rest, err := root.Find(args)
			if err != nil {
				t.Errorf("%s: %q: %v", path, args, err)
				continue
			}
			own = own || strings.HasPrefix(found.CommandPath(), cmd.CommandPath())
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", path, args, err)
				continue
			}
			if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %q: %v", path, args, err)
			}
		}
		if !own {
			t.Errorf("claimq %s has no example of its own: %q", path, cmd.Example)
		}
	})
	if examples < 100 {
		t.Errorf("there are only %d examples", examples)
	}
}

// claimqCalls returns the arguments of every call of claimq in lines of shell, also
// of those in a pipe or a substitution.
func claimqCalls(t *testing.T, lines string) (calls [][]string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		for _, at := range regexp.MustCompile(`(?:^|[\s|;&(]) *claimq `).FindAllStringIndex(line, -1) {
			calls = append(calls, shellWords(line[at[1]:]))
		}
	}
	return calls
}

// shellWords reads the words of a command up to its end.
func shellWords(text string) (words []string) {
	word, begun, quote := "", false, rune(0)
	end := func() {
		if begun {
			words = append(words, word)
		}
		word, begun = "", false
	}
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\n'):
			end()
		case quote == 0 && strings.ContainsRune("|;&)><", r):
			end()
			return words
		default:
			word, begun = word+string(r), true
		}
	}
	end()
	return words
}

// The man pages are the same when they are made again, are read without a complaint,
// and say what there is to say.
func TestMan(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "man1")
	for range 2 {
		a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: os.Stderr}
		if code := run(t.Context(), a, []string{"man", dir}); code != exitDone {
			t.Fatalf("exit code %d", code)
		}
	}
	pages, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	eachCommand(newTree(), func(cmd *cobra.Command, path string) {
		if !documented(cmd, path) {
			return
		}
		commands++
		page, err := os.ReadFile(filepath.Join(dir, manName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		for _, f := range flagsOf(cmd) {
			if !strings.Contains(string(page), ".B "+roff("--"+f.Name)) && !strings.Contains(string(page), ", "+roff("--"+f.Name)) {
				t.Errorf("the page of claimq %s does not have --%s", path, f.Name)
			}
		}
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, ".") && !regexp.MustCompile(`^\.(TH .*|SH [A-Z ]+|nh|ad l|PP|TP|B .+|BR .+|nf|fi)\n$`).MatchString(line) || strings.HasPrefix(line, "'") {
				t.Errorf("claimq %s: the formatter may take %q for a command", path, line)
			}
		}
	})
	if len(pages) != commands {
		t.Errorf("there are %d pages of %d commands", len(pages), commands)
	}
	page, err := os.ReadFile(filepath.Join(dir, "claimq-claim.1"))
	if err != nil || !strings.Contains(string(page), `eval "$(claimq claim \-\-worker w1`) || !strings.HasPrefix(string(page), `.TH "CLAIMQ\-CLAIM" 1 "" "claimq dev"`) {
		t.Errorf("the page of claim (%v) is\n%s", err, page)
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	if got, want := roff(".a\n'b' \\n -x\nc.d"), "\\&.a\n\\(aqb\\(aq \\en \\-x\nc.d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
