package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	c, err := arguments([]string{"--binary", "b", "--dir", "d", "--rounds", "3", "--time", "2s", "--counts", "5,4000", "--figures", "f", "--peers", "nats-server"}, io.Discard)
	if err != nil || c.binary != "b" || c.dir != "d" || c.rounds != 3 || c.time != 2*time.Second || !slices.Equal(c.counts, []int{5, 4000}) ||
		c.figures != "f" || len(c.find.dirs) == 0 || c.find.count != 4000 || !slices.Equal(c.find.only, []string{"nats-server"}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := arguments(nil, io.Discard); err != nil || c.rounds != 5 || !slices.Equal(c.counts, []int{1, 64, 256}) || c.find.only != nil {
		t.Errorf("without arguments: %+v, %v", c, err)
	}
	for args, want := range map[string]string{
		"--counts 0":     `--counts has "0": each must be a number from 1 to 4000`,
		"--counts 1,":    `--counts has "": each must be a number from 1 to 4000`,
		"--counts 4001":  `--counts has "4001": each must be a number from 1 to 4000`,
		"--peers nats":   `--peers has "nats": there are nats-server, rabbitmq-server and beanstalkd`,
		"--rounds 0":     "--rounds is 0 and --time is 5s: both must be above 0",
		"--time -1s":     "--rounds is 5 and --time is -1s: both must be above 0",
		"--nonsense":     "flag provided but not defined: -nonsense",
		"--rounds 1 two": `unknown argument "two"`,
	} {
		if _, err := arguments(strings.Fields(args), io.Discard); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// A small run measures claimq and each installed peer. Each has its row, and nothing stays of what was started.
func TestComparison(t *testing.T) {
	t.Chdir("../..") // the binary is built there
	binary, err := procs.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := comparison{binary: binary, dir: dir, rounds: 1, time: 100 * time.Millisecond, warmUp: 20 * time.Millisecond, counts: []int{1, 4}, find: finder{dirs: programDirs()}}
	found, _, err := c.find.all(t.Context(), binary)
	if err != nil {
		t.Fatal(err)
	}
	var out, progress strings.Builder
	if err := c.run(t.Context(), &out, &progress); err != nil {
		t.Fatal(err)
	}
	for i, s := range found {
		ratio := ""
		if i > 0 {
			ratio = ` \(\d+\.\d\d\)`
		}
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s \| %s \| .* \| [\d,]*[1-9][\d,]*%s \| [\d,]*[1-9][\d,]*%[3]s \|$`, s.name, regexp.QuoteMeta(s.release), ratio))
		if !row.MatchString(out.String()) {
			t.Errorf("no row of %s in\n%s", s.name, out.String())
		}
	}
	if got := strings.Count(progress.String(), "round 1 of 1: "); got != len(found) {
		t.Errorf("%d lines of progress for %d systems:\n%s", got, len(found), progress.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	if runtime.GOOS == "linux" {
		testwait.Until(t, "the end of all processes", func() bool { return len(processesOf(t, dir)) == 0 })
	}
}

// processesOf returns the processes that have the folder in their arguments or as their working directory.
func processesOf(t *testing.T, dir string) (of []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(all) == 0 {
		t.Fatalf("no process is to be seen: %v", err)
	}
	for _, process := range all {
		arguments, _ := os.ReadFile(filepath.Join(process, "cmdline")) // it may have ended
		works, _ := os.Readlink(filepath.Join(process, "cwd"))
		if strings.Contains(string(arguments), dir) || strings.HasPrefix(works, dir) {
			of = append(of, process)
		}
	}
	return of
}
