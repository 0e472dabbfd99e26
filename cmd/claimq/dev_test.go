package main

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/internal/testwait"
)

// A second dev leaves the first one's data alone. It names the flags that let both run.
func TestDev_second(t *testing.T) {
	t.Parallel()
	first := startDev(t, "--nodes", "1")
	leader := first.leaderPID(t)
	for name, test := range map[string]struct {
		dir  string
		port int
		want []string
	}{
		"the same folder": {first.dir, first.port + 100, []string{"another `claimq dev` runs in the folder " + first.dir, "--data-dir", "--port"}},
		"the same ports":  {t.TempDir(), first.port, []string{"port " + strconv.Itoa(first.port), "in use", "--port"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), claimqtest.Patience)
		out, err := claimq(ctx, "dev", "--nodes", "1", "--data-dir", test.dir, "--port", strconv.Itoa(test.port)).CombinedOutput()
		cancel()
		if err == nil || strings.Contains(string(out), "pid ") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		for _, want := range test.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: it says %s, which lacks %s", name, out, want)
			}
		}
		if entries, err := os.ReadDir(test.dir); name == "the same ports" && (err != nil || len(entries) > 0) {
			t.Errorf("it left %v in its folder, %v", entries, err)
		}
	}
	if first.leaderPID(t) != leader {
		t.Error("leader.pid has changed")
	}
}

// However dev ends, its nodes end too.
func TestDev_killed(t *testing.T) {
	t.Parallel()
	base := takeBasePort(t)
	dev := claimq(context.Background(), "dev", "--nodes", "2", "--data-dir", t.TempDir(), "--port", strconv.Itoa(base))
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	listens := func(port int) bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			return false
		}
		conn.Close()
		return true
	}
	testwait.Until(t, "both nodes to listen", func() bool { return listens(base) && listens(base+10) })
	if err := dev.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := dev.Wait(); err == nil {
		t.Error("it ended well")
	}
	testwait.Until(t, "both nodes to end", func() bool { return !listens(base) && !listens(base+10) })
}
