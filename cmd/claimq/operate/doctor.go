package operate

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// errUnhealthy is returned when doctor has found and printed a problem.
var errUnhealthy = errors.New("something is wrong with the data folder")

// NewDoctorCommand returns the command `claimq doctor`.
func NewDoctorCommand(a *term.App) *cobra.Command {
	var dir, output string
	cmd := &cobra.Command{
		Use:   "doctor DIR",
		Short: "Check the data folder of a stopped node",
		Long: `Check the data folder of a stopped node: which node it belongs to, the checksums of
every log entry and every snapshot, whether log and snapshots fit together, and the
free space. The command changes nothing. Exit code 1: something is wrong, and the
output says what to do.`,
		Example: "  claimq doctor /var/lib/claimq\n  claimq doctor /var/lib/claimq --output json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 { // --data-dir or its variable names the folder
				return nil
			}
			return term.Arguments(cmd, args)
		},
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if dir != "" {
					return term.UsageErrorf("DIR and --data-dir are both given: give one of them")
				}
				dir = args[0]
			}
			if err := term.SetFromVariables(a, cmd.Flags()); err != nil {
				return err
			}
			switch {
			case dir == "":
				return term.MissingArgument(cmd, "DIR")
			case output != "table" && output != "json":
				return term.UsageErrorf("--output is %q: it must be one of table, json", output)
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			findings, err := storage.Examine(dir, cluster.DefaultConfig().DiskFreeMin)
			if err != nil {
				return term.UsageErrorf("DIR: %w", err)
			}
			show := showFindings
			if output == "json" {
				show = showFindingsJSON
			}
			if err := show(a.Stdout, findings); err != nil {
				return err
			}
			if slices.ContainsFunc(findings, func(f storage.Finding) bool { return !f.OK }) {
				return errUnhealthy
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "data-dir", "", "the same as DIR (CLAIMQ_DATA_DIR)")
	cmd.Flags().StringVar(&output, "output", "table", "table, json")
	return cmd
}

func showFindings(w io.Writer, findings []storage.Finding) error {
	for _, f := range findings {
		verdict := "ok   "
		if !f.OK {
			verdict = "WRONG"
		}
		if _, err := fmt.Fprintf(w, "%s  %-10s %s\n", verdict, f.Part, term.Printable(f.Text)); err != nil {
			return err
		}
		if f.Advice != "" {
			if _, err := fmt.Fprintf(w, "       %-10s %s\n", "", term.Printable(f.Advice)); err != nil {
				return err
			}
		}
	}
	return nil
}

func showFindingsJSON(w io.Writer, findings []storage.Finding) error {
	type finding struct {
		Part   string `json:"part"`
		OK     bool   `json:"ok"`
		Text   string `json:"text"`
		Advice string `json:"advice,omitempty"`
	}
	report := struct {
		OK       bool      `json:"ok"`
		Findings []finding `json:"findings"`
	}{OK: true}
	for _, f := range findings {
		report.OK = report.OK && f.OK
		report.Findings = append(report.Findings, finding(f))
	}
	return term.ShowJSON(w, report)
}
