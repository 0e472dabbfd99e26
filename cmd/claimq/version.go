package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/zones"
)

func newVersionCommand(a *term.App) *cobra.Command {
	var o term.OutputFlag
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  claimq version\n  claimq version --output json",
		RunE: func(*cobra.Command, []string) error {
			if o.Output == "json" {
				return term.ShowJSON(a.Stdout, builtAs{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, TimeZones: zonesVersion()})
			}
			return a.Sayf("claimq %s\ntime zones %s", version, zonesVersion())
		},
	}
	o.Add(cmd)
	return cmd
}

// builtAs is the JSON output of version.
type builtAs struct {
	Version   string `json:"version"`
	Go        string `json:"go"`
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	TimeZones string `json:"time_zones"`
}

// zonesVersion returns the release of the time zones in the binary.
func zonesVersion() string { return (*zones.Data)(nil).Version() }
