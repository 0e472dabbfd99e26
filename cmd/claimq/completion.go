package main

import (
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

func newCompletionCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a shell's completion script",
		Long:  "Print the completion script of a shell: bash, zsh, fish or powershell.",
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
