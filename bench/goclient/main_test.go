package main

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claimq/claimq/jepsen/procs"
)

// fake is a claimq bench whose figures depend on its arguments.
const fake = `#!/bin/sh
case "$*" in
*--conns*--client*) echo '{"tasks_per_s": 3000, "tasks": 10, "load_cpu_s": 0.0005, "calls": [{"call": "submit", "p50_ms": 1.5}]}' ;;
*nothing*) echo '{"tasks_per_s": 0}' ;;
*broken*) echo 'no JSON' ;;
*) echo '{"tasks_per_s": 1500, "tasks": 10, "load_cpu_s": 0.001, "calls": [{"call": "claim", "p50_ms": 9}, {"call": "submit", "p50_ms": 0.75}]}' ;;
esac
`

func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "claimq")
	if err := procs.WriteExecutable(binary, []byte(fake)); err != nil {
		t.Fatal(err)
	}
	all := works()
	rows := []work{all[0], all[5], all[6]}
	rows[2].args = rows[0].args // measured once
	var out, progress strings.Builder
	if err := run(t.Context(), binary, 2, rows, &out, &progress); err != nil {
		t.Fatal(err)
	}
	want := `| what | Go client | bare connections | ratio | command, with ` + "`--client`" + ` and without |
| --- | --- | --- | --- | --- |
| submit and Worker, 64 goroutines and slots: tasks/s | 3,000 | 1,500 | 2.00 | ` + "`claimq bench --nodes 3 --conns 64 --tasks 60000`" + ` |
| one lone submit: p50, ms | 1.50 | 0.75 | 2.00 | ` + "`claimq bench --nodes 3 --mode submit --conns 1 --tasks 10000`" + ` |
| the load's processor time of a task, 256: µs | 50 | 100 | 0.50 | ` + "`claimq bench --nodes 3 --conns 64 --tasks 60000`" + ` |
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	calls := regexp.MustCompile(`(?m)^round (\d) of 2: claimq bench --nodes 3 (.*): \d+ tasks/s$`).FindAllStringSubmatch(progress.String(), -1)
	var order []string
	for _, call := range calls {
		order = append(order, call[1]+" "+call[2])
	}
	wantOrder := "1 --conns 64 --tasks 60000 --client, 1 --conns 64 --tasks 60000, 1 --mode submit --conns 1 --tasks 10000 --client, 1 --mode submit --conns 1 --tasks 10000, " +
		"2 --conns 64 --tasks 60000, 2 --conns 64 --tasks 60000 --client, 2 --mode submit --conns 1 --tasks 10000, 2 --mode submit --conns 1 --tasks 10000 --client"
	if got := strings.Join(order, ", "); got != wantOrder {
		t.Errorf("in the order %s", got)
	}
	for args, want := range map[string]string{
		"--mode nothing": "claimq bench --mode nothing --client measured nothing",
		"--mode broken":  "read what claimq bench --mode broken --client printed: ",
	} {
		if err := run(t.Context(), binary, 1, []work{{args: args}}, io.Discard, io.Discard); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// claimq bench accepts the commands of the rows. Two rows are tried with fewer tasks.
func TestWorks(t *testing.T) {
	t.Parallel()
	binary, err := procs.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	few := regexp.MustCompile(`--tasks \d+`)
	all := works()
	rows := []work{all[3], all[5]}
	for i := range rows {
		rows[i].args = few.ReplaceAllString(rows[i].args, "--tasks 1100 --warm-up 1ms")
	}
	var out strings.Builder
	if err := run(t.Context(), binary, 1, rows, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^\| [^|]+ \| [\d,.]*[1-9][\d,.]* \| [\d,.]*[1-9][\d,.]* \| \d+\.\d\d \| `)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, text := range lines[2:] {
		if !line.MatchString(text) {
			t.Errorf("printed %s", text)
		}
	}
	if len(lines) != len(rows)+2 {
		t.Errorf("%d lines for %d rows", len(lines), len(rows))
	}
}
