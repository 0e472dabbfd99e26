package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// outputFlag is --output of a command that asks no server.
type outputFlag struct{ output string }

func (o *outputFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.output, "output", "table", "table, json")
}

func (o *outputFlag) check() error {
	if o.output != "table" && o.output != "json" {
		return usageErrorf("--output is %q: it must be one of table, json", o.output)
	}
	return nil
}

func newVersionCommand(a *app) *cobra.Command {
	var o outputFlag
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  claimq version\n  claimq version --output json",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE: func(*cobra.Command, []string) error {
			if o.output == "json" {
				return showJSONOf(a.stdout, builtAs{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH})
			}
			_, err := fmt.Fprintln(a.stdout, "claimq "+version)
			return err
		},
	}
	o.add(cmd)
	return cmd
}

// builtAs is what version prints as JSON.
type builtAs struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}
