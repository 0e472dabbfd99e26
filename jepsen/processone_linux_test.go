package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
)

// As the first process of a container, a worker reaps the processes that its commands leave behind.
func TestWork_processOne(t *testing.T) {
	needRoot(t)
	c := newCluster(t, 1)
	const tasks = 5
	newUser(t, c).submit(tasks, 1)
	dir := t.TempDir()
	work := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
		binary(), "work", "--type", "t", "--endpoint", c.URLs()[0], "--", "sh", "-c", `
left=left-$CLAIMQ_TASK_ID
setsid sh -c "echo >$left; sleep 0.1; echo >>ended" >/dev/null 2>&1 &
until [ -e $left ]; do sleep 0.01; done`)
	work.Dir, work.Stdout, work.Stderr, work.SysProcAttr = dir, t.Output(), t.Output(), procs.ChildAttr()
	if err := work.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = work.Process.Kill()
		_ = work.Wait()
	})
	testwait.Until(t, "all that was left behind to end", func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "ended"))
		return bytes.Count(b, []byte("\n")) == tasks
	})
	testwait.Until(t, "nothing to be below the worker", func() bool {
		worker := children(t, fmt.Sprint(work.Process.Pid))
		return len(worker) == 1 && len(children(t, worker[0])) == 0
	})
}

// children returns the ids of the process's children, including zombies.
func children(t *testing.T, parent string) (ids []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[1-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		b, _ := os.ReadFile(name) // empty: the process has ended
		_, rest, _ := strings.Cut(string(b), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == parent {
			ids = append(ids, filepath.Base(filepath.Dir(name)))
		}
	}
	return ids
}
