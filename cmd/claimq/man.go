package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cmd/claimq/term"
)

func newManCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages into a folder",
		Long: `Write the man pages into a folder, one for each command: claimq.1, claimq-submit.1,
claimq-cluster-status.1 and so on. The folder is made if it is not there. A release has
them ready made.`,
		Example: "  claimq man /usr/local/share/man/man1\n  claimq man ./man && man -l ./man/claimq-submit.1",
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManPages(cmd.Root(), args[0])
		},
	}
}

// writeManPages writes a page for each command below root. They depend only on the version.
func writeManPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var err error
	term.EachCommand(root, func(cmd *cobra.Command, path string) {
		if err == nil && documented(cmd, path) {
			err = os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd)), 0o644)
		}
	})
	return err
}

// documented reports whether a command has its own page.
func documented(cmd *cobra.Command, path string) bool {
	return path == "" || cmd.IsAvailableCommand() && cmd.Name() != "help"
}

// manName returns the name of a command's page, such as claimq-cluster-status.
func manName(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "-")
}

// manPage returns a command's page.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(name string) { fmt.Fprintf(&b, ".SH %s\n", name) }
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s \"claimq\"\n.nh\n.ad l\n", roffQuote(strings.ToUpper(manName(cmd))), roffQuote("claimq "+version))
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	section("SYNOPSIS")
	use := cmd.UseLine()
	if term.OnlyLeads(cmd) {
		use = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, ".B %s\n", roff(use))
	if cmd.Long != "" {
		section("DESCRIPTION")
		writeRoffText(&b, cmd.Long)
	}
	if subs := availableCommands(cmd); len(subs) > 0 {
		section("COMMANDS")
		for _, sub := range subs {
			if sub.Name() != "help" {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
			}
		}
	}
	if flags := term.FlagsOf(cmd); len(flags) > 0 {
		section("OPTIONS")
		for _, f := range flags {
			name, usage := flagText(f)
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(name), roff(usage))
		}
	}
	if cmd.Example != "" {
		section("EXAMPLES")
		writeRoffBlock(&b, cmd.Example)
	}
	if asksServer(cmd) {
		section("ENVIRONMENT")
		writeRoffText(&b, "CLAIMQ_ENDPOINTS says the same as --endpoint, with commas between the URLs; other flags have a variable of their name, as CLAIMQ_API_KEY of --api-key. A flag beats its variable.")
		section("EXIT STATUS")
		writeRoffText(&b, "0 done, 1 the server refused, 2 wrong usage, 3 no server or the outcome is unknown, 4 nothing to claim or not found.")
	}
	section("SEE ALSO")
	b.WriteString(seeAlso(cmd) + "\n")
	return b.String()
}

// seeAlso names the pages above and below a command's.
func seeAlso(cmd *cobra.Command) string {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, manName(cmd.Parent()))
	}
	for _, sub := range availableCommands(cmd) {
		if sub.Name() != "help" {
			pages = append(pages, manName(sub))
		}
	}
	for i, page := range pages {
		pages[i] = ".BR " + roff(page) + " (1)"
	}
	return strings.Join(pages, ",\n")
}

// asksServer reports whether a command calls a server.
func asksServer(cmd *cobra.Command) bool { return cmd.Flags().Lookup("api-key") != nil }

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

// writeRoffText writes paragraphs; indented lines stay unchanged.
func writeRoffText(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, "  ") {
			writeRoffBlock(b, paragraph)
			continue
		}
		b.WriteString(roff(paragraph) + "\n")
	}
}

// writeRoffBlock writes lines without filling them.
func writeRoffBlock(b *strings.Builder, lines string) {
	fmt.Fprintf(b, ".nf\n%s\n.fi\n", roff(lines))
}

// roff escapes text for the formatter: backslashes, leading dots and apostrophes, and hyphens.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// roffQuote returns text as one argument of a command.
func roffQuote(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
