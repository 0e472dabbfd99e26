package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// newTree returns the command tree without any input or output.
func newTree() *cobra.Command {
	return newRootCommand(&term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
}

const (
	cliPage  = "../../docs/cli.md"
	cliBegin = "<!-- made of the commands: go test ./cmd/claimq -run CLIPage -update -->\n"
)

// docs/cli.md has every command with its present flags and examples. The text above the marker line is written by
// hand.
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

// cliReference lists the commands and then describes them.
func cliReference(root *cobra.Command) string {
	var list, b strings.Builder
	plain, _, err := root.Find([]string{"get"}) // get has only the common flags
	if err != nil {
		panic(err)
	}
	term.EachCommand(root, func(cmd *cobra.Command, path string) {
		if path != "" && cmd.IsAvailableCommand() && cmd.Name() != "help" && !term.IsGroup(cmd) {
			fmt.Fprintf(&list, "| [%s](#claimq-%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), cmd.Short)
			writeCommand(&b, cmd, plain)
		}
	})
	return "\n## The commands\n\n| command | does |\n| --- | --- |\n" + list.String() + "\n### Flags of every command that asks a server\n\n```\n" +
		flagLines(plain, nil) + "```\n" + b.String()
}

// flagLines returns the flags that the command has and others lacks, one per line.
func flagLines(cmd, others *cobra.Command) string {
	known := map[string]bool{}
	if others != nil {
		for _, f := range term.FlagsOf(others) {
			known[flagLine(f)] = true
		}
	}
	var rows [][]string
	for _, f := range term.FlagsOf(cmd) {
		if name, usage := flagText(f); !known[flagLine(f)] {
			rows = append(rows, []string{name, usage})
		}
	}
	var b strings.Builder
	_ = term.Columns(&b, rows)
	return b.String()
}

func flagLine(f *pflag.Flag) string {
	name, usage := flagText(f)
	return name + " " + usage
}

// flagText returns a flag with its argument, and its usage with its default.
func flagText(f *pflag.Flag) (name, usage string) {
	takes, usage := pflag.UnquoteUsage(f)
	name = "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if takes != "" {
		name += " " + takes
	}
	switch value := strings.Trim(f.DefValue, "[]"); value {
	case "", "0", "0s", "false":
	default:
		if !strings.Contains(usage, "(default ") {
			usage += " (default " + value + ")"
		}
	}
	return name, usage
}

func writeCommand(b *strings.Builder, cmd, plain *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	// Indented text is a separate block already, and <...> would be taken for a tag.
	text = strings.ReplaceAll(regexp.MustCompile(`(?m)^  `).ReplaceAllString(text, "    "), "<", "&lt;")
	fmt.Fprintf(b, "\n### %s\n\n    %s\n\n%s\n", cmd.CommandPath(), cmd.UseLine(), text)
	if lines := flagLines(cmd, plain); lines != "" {
		fmt.Fprintf(b, "\n```\n%s```\n", lines)
	}
	fmt.Fprintf(b, "\n```sh\n%s\n```\n", regexp.MustCompile(`(?m)^  `).ReplaceAllString(cmd.Example, ""))
}

// Every example is a valid command line: its flags exist, and it has as many arguments as the command takes.
func TestExamples_areTaken(t *testing.T) {
	t.Parallel()
	examples := 0
	term.EachCommand(newTree(), func(cmd *cobra.Command, path string) {
		own := false
		for _, args := range claimqCalls(cmd.Example) {
			examples++
			if err := taken(args, nil); err != nil {
				t.Errorf("%s: %q: %v", path, args, err)
			}
			own = own || strings.HasPrefix(strings.Join(args, " "), path)
		}
		if !own {
			t.Errorf("claimq %s has no example of its own: %q", path, cmd.Example)
		}
	})
	if examples < 100 {
		t.Errorf("there are only %d examples", examples)
	}
}

// The command lines of the contract are valid, with all their flags.
func TestContract_commandLines(t *testing.T) {
	t.Parallel()
	lines := `claimq dev --nodes 3 --data-dir ./claimq-data --restart
claimq server --node-id n1 --data-dir DIR --http-addr 127.0.0.1:7400 --peer-addr 127.0.0.1:7401 --http-advertise A:1 --peer-advertise A:2 --bootstrap
claimq server --join P:1,P:2 --join-key-file F --config FILE --insecure
claimq server --initial-cluster n1=HOST:1,n2=HOST:2
claimq submit TYPE PARAMS --key K --priority 1 --delay 10m --label k=v --wait 30s
claimq submit TYPE --file NDJSON --endpoint http://a --endpoint http://b --api-key K --output json
claimq claim --worker W --type T --type U --wait 30s --lease 2m --output env
claimq complete 1 --worker W --token 2 RESULT
claimq fail 1 --worker W --token 2 --error TEXT --permanent
claimq fail 1 --worker W --token 2 --error TEXT --retry-in 5m
claimq extend 1 --worker W --token 2
claimq release 1 --worker W --token 2
claimq retry 1; claimq cancel 1; claimq delete 1; claimq get 1; claimq why 1; claimq events 1
claimq list --status S --type T --label k=v --limit 5
claimq stats --type T; claimq types --type T; claimq workers --type T
claimq work --type T --concurrency 2 -- COMMAND --its-own
claimq bulk retry --status failed --type T --dry-run --expect 3 --add-attempts 3
claimq bulk cancel --status failed; claimq bulk delete --status failed
claimq type set T --pause --resume --max-claimed 2
claimq schedule set n T --cron @daily; claimq schedule list; claimq schedule delete n
claimq steps 1; claimq finalize 1
claimq cluster status; claimq cluster join n4 H:1; claimq cluster remove n4; claimq cluster promote n4; claimq cluster demote n4
claimq cluster transfer; claimq cluster transfer n2; claimq cluster recover --data-dir D
claimq snapshot take; claimq snapshot save F; claimq snapshot restore F; claimq snapshot inspect F
claimq key generate --role R --name N; claimq config show; claimq doctor --data-dir D; claimq bench; claimq version; claimq completion bash
`
	calls := claimqCalls(lines)
	if want := strings.Count(lines, "claimq "); len(calls) != want {
		t.Fatalf("found %d of %d command lines", len(calls), want)
	}
	for _, args := range calls {
		if err := taken(args, nil); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// taken checks a command line against the command tree without running it. If filled is not nil, it replaces the
// arguments after the command's name.
func taken(args []string, filled func(cmd *cobra.Command, args []string) []string) error {
	cmd, rest, err := newTree().Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if filled != nil {
		rest = filled(cmd, rest)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if asked, _ := cmd.Flags().GetBool("help"); asked {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// claimqCalls returns the arguments of every call of claimq in shell lines, even in a pipe or a substitution.
func claimqCalls(lines string) (calls [][]string) {
	for line := range strings.Lines(lines) {
		line = strings.ReplaceAll(line, "-u claimq", "") // a unit, or a user
		for _, at := range regexp.MustCompile(`(?:^|[\s|;&(])(?:bin/)?claimq(?: |$)`).FindAllStringIndex(line, -1) {
			calls = append(calls, shellWords(line[at[1]:]))
		}
	}
	return calls
}

// shellWords reads the words of a command up to its end. A substitution counts as one word.
func shellWords(text string) (words []string) {
	word, begun, quote, depth := "", false, rune(0), 0
	end := func() {
		if begun {
			words = append(words, word)
		}
		word, begun = "", false
	}
	for _, r := range text {
		switch {
		case depth > 0 || r == '(' && strings.HasSuffix(word, "$"):
			depth += strings.Count(string(r), "(") - strings.Count(string(r), ")")
			word += string(r)
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\n'):
			end()
		case quote == 0 && r == '>' && word == "2": // part of a redirection
			return words
		case quote == 0 && (strings.ContainsRune("|;&)><", r) || r == '#' && !begun):
			end()
			return words
		default:
			word, begun = word+string(r), true
		}
	}
	end()
	return words
}

// The flags of commands that have --timeout also have variables, as the page says.
func TestCommands_variables(t *testing.T) {
	t.Parallel()
	a := &term.App{Stderr: io.Discard, Environ: []string{"CLAIMQ_OUTPUT=xml"}}
	term.EachCommand(newRootCommand(a), func(cmd *cobra.Command, path string) {
		if cmd.Flags().Lookup("output") == nil || path == "work" || path == "doctor" {
			return
		}
		err := error(nil)
		if cmd.PreRunE != nil {
			err = cmd.PreRunE(cmd, nil)
		}
		if cmd.Flags().Lookup("timeout") != nil != (err != nil) {
			t.Errorf("%s with CLAIMQ_OUTPUT=xml: %v", path, err)
		}
	})
}
