package operate

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/bytesize"
)

func newSnapshotInspectCommand(a *term.App) *cobra.Command {
	var o term.OutputFlag
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Verify a backup, and show its contents",
		Long: `Verify a backup and show its contents, without a server. The command reads the whole
file and checks everything that a restore checks. Exit code 1: the backup cannot be
restored.`,
		Example: "  claimq snapshot inspect claimq.backup\n  claimq snapshot inspect claimq.backup --output json",
		RunE: func(_ *cobra.Command, args []string) error {
			i, err := inspectBackup(args[0])
			if i == nil {
				return err
			}
			if o.Output == "json" {
				return errors.Join(term.ShowJSON(a.Stdout, i), err)
			}
			return errors.Join(showInspection(a, i), err)
		},
	}
	o.Add(cmd)
	return cmd
}

// inspection is the output of inspect.
type inspection struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	OK      bool   `json:"checksum_ok"`
	Problem string `json:"problem,omitempty"`
	backupFacts
	Counts     map[string]int64 `json:"counts,omitempty"` // by status
	StateBytes int64            `json:"state_bytes"`      // in a node's memory
	Types      []inspectedType  `json:"types,omitempty"`
}

type inspectedType struct {
	TaskType string           `json:"task_type"`
	Counts   map[string]int64 `json:"counts"`
}

// inspectBackup reads the file at path. An error says why the backup cannot be restored. The inspection then holds
// what was readable, or is nil if nothing was.
func inspectBackup(path string) (*inspection, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	i := &inspection{File: path, Bytes: stat.Size()}
	info, _, err := fsm.ReadBackupInfo(f, stat.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	i.backupFacts = factsOf(&info)
	backup, err := fsm.ReadBackup(f, stat.Size())
	if err != nil {
		i.Problem = err.Error()
		return i, fmt.Errorf("%s cannot be restored: %w", path, err)
	}
	stats := backup.Stats()
	i.OK, i.StateBytes, i.Counts = true, stats.Bytes, countsByName(&stats.Counts)
	for _, t := range stats.Types {
		i.Types = append(i.Types, inspectedType{TaskType: t.Type, Counts: countsByName(&t.Counts)})
	}
	return i, nil
}

// countsByName returns the counts other than 0, by name.
func countsByName(counts *[fsm.StatusCancelled + 1]int64) map[string]int64 {
	named := make(map[string]int64)
	for s, n := range counts {
		if n != 0 {
			named[fsm.Status(s).String()] = n
		}
	}
	return named
}

func showInspection(a *term.App, i *inspection) error {
	var f term.Fields
	f.Add("file", term.Printable(i.File))
	f.Add("size", bytesize.Text(i.Bytes))
	verdict := "ok"
	if !i.OK {
		verdict = "BAD: " + i.Problem
	}
	f.Add("checksum", verdict)
	f.Add("cluster id", term.Cell(i.ClusterID))
	f.Add("index", strconv.FormatUint(i.Index, 10))
	f.Add("feature level", strconv.FormatUint(uint64(i.FeatureLevel), 10))
	f.Add("created", i.CreatedAt)
	f.AddSome("by version", i.Version)
	if !i.OK {
		return term.Columns(a.Stdout, f)
	}
	f.Add("in memory", bytesize.Text(i.StateBytes))
	if err := term.Columns(a.Stdout, f); err != nil {
		return err
	}
	rows := [][]string{append([]string{"TYPE"}, statusNames()...)}
	for _, t := range i.Types {
		rows = append(rows, countsRow(term.Cell(t.TaskType), t.Counts))
	}
	rows = append(rows, countsRow("all", i.Counts))
	if _, err := fmt.Fprintln(a.Stdout); err != nil {
		return err
	}
	return a.Table(rows)
}

func statusNames() (names []string) {
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		names = append(names, s.String())
	}
	return names
}

func countsRow(name string, counts map[string]int64) []string {
	row := []string{name}
	for _, s := range statusNames() {
		row = append(row, strconv.FormatInt(counts[s], 10))
	}
	return row
}
