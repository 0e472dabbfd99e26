package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

func newCompletionCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a shell's completion script",
		Long: `Print the completion script of a shell: bash, zsh, fish or powershell. The tab key
completes commands, flags, and the words that a flag takes; it asks no server.`,
		Example: `  source <(claimq completion bash)
  claimq completion zsh > "${fpath[1]}/_claimq"
  claimq completion fish > ~/.config/fish/completions/claimq.fish`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.Stdout)
			case "fish":
				return root.GenFishCompletion(a.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Stdout)
			}
			return term.UsageErrorf("there is no completion for %q: it must be bash, zsh, fish or powershell", args[0])
		},
	}
}

// flagWords are the words that flags take, by the flag's name, or by the command's path and the flag's name.
var flagWords = map[string]string{
	"output":          "table json",
	"claim --output":  "table json env",
	"status":          "pending scheduled blocked claimed running completed failed cancelled",
	"role":            "reader producer worker operator",
	"unique":          "exists active window",
	"sort-by":         "priority created_at random",
	"sort-order":      "asc desc",
	"overlap":         "skip allow",
	"catch-up":        "one skip",
	"outcome":         "completed failed",
	"order":           "name oldest submitted_per_s completed_per_s failed_per_s pending scheduled blocked claimed running completed failed cancelled",
	"mode":            "submit drain lifecycle chain latency",
	"finalize":        "auto claim",
	"on-step-failure": "fail continue",
	"log-level":       "trace debug info warn error",
	"log-format":      "text json",
}

// addCompletions sets what the tab key offers for arguments and flags: words, folders, or files only where they are
// taken. By default the shell would offer files everywhere.
func addCompletions(root *cobra.Command) error {
	var errs []error
	term.EachCommand(root, func(cmd *cobra.Command, path string) {
		if cmd.ValidArgs == nil && !takesFiles(path) {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for _, f := range term.FlagsOf(cmd) {
			switch words := strings.Fields(cmp.Or(flagWords[path+" --"+f.Name], flagWords[f.Name])); {
			case f.NoOptDefVal != "", isFileFlag(f.Name):
			case strings.HasSuffix(f.Name, "dir"):
				errs = append(errs, cmd.MarkFlagDirname(f.Name))
			default:
				errs = append(errs, cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
			}
		}
	})
	return errors.Join(errs...)
}

// takesFiles reports whether the command's arguments are files, or another command.
func takesFiles(path string) bool {
	switch path {
	case "batch", "snapshot save", "snapshot inspect", "snapshot restore", "work":
		return true
	}
	return false
}

// isFileFlag reports whether a flag of that name takes the name of a file.
func isFileFlag(name string) bool {
	return strings.HasSuffix(name, "file") || name == "config" || name == "steps" || name == "cpu-profile"
}
