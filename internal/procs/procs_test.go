package procs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// waitMax bounds the waits of these tests.
const waitMax = 20 * time.Second

// script makes a node that runs a shell script instead of claimq.
func script(t *testing.T, text string) *Node {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "claimq")
	if err := WriteExecutable(binary, []byte("#!/bin/sh\n"+text)); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Binary: binary, Dir: dir, Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.Nodes[0]
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitMax)
	t.Cleanup(cancel)
	return ctx
}

// printed waits until the node has printed text.
func printed(t *testing.T, n *Node, text string) {
	t.Helper()
	ctx := within(t)
	for !strings.Contains(n.Output(), text) {
		select {
		case <-ctx.Done():
			t.Fatalf("it printed %q, want %q", n.Output(), text)
		case <-time.After(pollInterval):
		}
	}
}

const serves = `trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done`

// A killed node is gone when Kill returns, and its exit code tells how it ended.
func TestNode_Kill(t *testing.T) {
	t.Parallel()
	n := script(t, serves)
	if err := n.Kill(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("kill before the start: got %v, want ErrNotRunning", err)
	}
	for range 2 {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		if err := n.Start(); !errors.Is(err, ErrRunning) {
			t.Errorf("second start: got %v, want ErrRunning", err)
		}
		if n.ExitCode() != -1 {
			t.Errorf("exit code while it runs: got %d, want -1", n.ExitCode())
		}
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		if n.Running() || n.ExitCode() != 128+9 {
			t.Errorf("after Kill: running %v, exit code %d", n.Running(), n.ExitCode())
		}
	}
}

// A stopped node has ended by itself, even if it was paused for a while.
func TestNode_StopAndPause(t *testing.T) {
	t.Parallel()
	n := script(t, serves)
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	printed(t, n, "up")
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*pollInterval)
	defer cancel()
	if err := n.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop of a paused node: got %v, want DeadlineExceeded", err)
	}
	if err := n.Continue(); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitExit(within(t)); err != nil {
		t.Fatal(err)
	}
	if n.ExitCode() != 3 || n.LogTail(1) != "bye" {
		t.Errorf("exit code %d after %q, want 3 after bye", n.ExitCode(), n.LogTail(1))
	}
}

// WaitReady returns at once when the node ends, with its output.
func TestNode_WaitReadyOfOneThatEnds(t *testing.T) {
	t.Parallel()
	n := script(t, "echo no disk; exit 7")
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	err := n.WaitReady(within(t))
	if err == nil || !strings.Contains(err.Error(), "exit code 7") || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("got %v", err)
	}
}

// The nodes get consistent flags.
func TestNew_flags(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Binary: "claimq", Dir: t.TempDir(), Nodes: 3, Flags: []string{"--log-level", "debug"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	value := func(n *Node, flag string) string { return n.Args[slices.Index(n.Args, flag)+1] }
	var members []string
	for _, n := range c.Nodes {
		members = append(members, n.ID+"="+value(n, "--peer-addr"))
	}
	for _, n := range c.Nodes {
		if got := value(n, "--initial-cluster"); got != strings.Join(members, ",") {
			t.Errorf("%s: --initial-cluster is %s, want %v", n.ID, got, members)
		}
		if got := "http://" + value(n, "--http-addr"); got != n.URL() || value(n, "--log-level") != "debug" {
			t.Errorf("%s: flags %v", n.ID, n.Args)
		}
	}
	n := c.Nodes[0]
	n.SetFlag("--log-level", "warn")
	n.SetFlag("--insecure", "true")
	if value(n, "--log-level") != "warn" || value(n, "--insecure") != "true" {
		t.Errorf("after SetFlag: %v", n.Args)
	}
}

// Nodes that join know the others, and are not started with them.
func TestNew_joining(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Binary: "/bin/false", Dir: t.TempDir(), Nodes: 3, Joining: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	peers := c.Nodes[0].PeerAddr + "," + c.Nodes[1].PeerAddr
	if last := c.Nodes[2]; !slices.Contains(last.Args, peers) || slices.Contains(last.Args, "--initial-cluster") {
		t.Errorf("flags of the one that joins: %v", last.Args)
	}
	if strings.Contains(strings.Join(c.Nodes[0].Args, " "), c.Nodes[2].PeerAddr) {
		t.Errorf("flags of one that does not: %v", c.Nodes[0].Args)
	}
	if err := c.StartAll(within(t)); err == nil || c.Nodes[2].PID() != 0 {
		t.Errorf("StartAll: %v, pid of the one that joins %d", err, c.Nodes[2].PID())
	}
	if _, err := New(Config{Binary: "/bin/false", Dir: t.TempDir(), Nodes: 2, Joining: 2}); err == nil {
		t.Error("nobody is there to be joined, and that is no error")
	}
}

// Taken ports are not given to another run, nor is one on which something listens. (Not in
// parallel: it frees a port and takes it again.)
func TestTakePorts(t *testing.T) {
	first, releaseFirst, err := TakePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseFirst()
	second, releaseSecond, err := TakePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[int]bool{}
	for _, number := range slices.Concat(first, second) {
		if taken[number] {
			t.Errorf("port %d was given twice", number)
		}
		taken[number] = true
	}
	number := second[0]
	releaseSecond()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", number))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	passed.Store(0) // begin at the same port again
	third, releaseThird, err := TakePorts(40)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseThird()
	if slices.Contains(third, number) {
		t.Errorf("port %d was given though somebody listens on it", number)
	}
}

// Ports that were released are not given again at once, because nodes that still run may call who had them.
func TestTakePorts_released(t *testing.T) {
	t.Parallel()
	taken := map[int]bool{}
	for range 5 {
		numbers, release, err := TakePorts(3)
		if err != nil {
			t.Fatal(err)
		}
		release()
		for _, number := range numbers {
			if taken[number] {
				t.Errorf("port %d was given twice", number)
			}
			taken[number] = true
		}
	}
}

// Ports at offsets are taken together, and released together.
func TestTakePortsFrom(t *testing.T) {
	t.Parallel()
	offsets := []int{0, 1, 10, 11}
	taken := map[int]bool{}
	var releases []func()
	for range 15 { // more than fit between each other's
		base, release, err := TakePortsFrom(offsets...)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
		for _, offset := range offsets {
			if taken[base+offset] {
				t.Errorf("port %d was given twice", base+offset)
			}
			taken[base+offset] = true
		}
	}
	numbers, release, err := TakePorts(30)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if slices.ContainsFunc(numbers, func(number int) bool { return taken[number] }) {
		t.Errorf("%v has ports that were given", numbers)
	}
	for _, release := range releases {
		release()
	}
	dir, err := portsDir()
	if err != nil {
		t.Fatal(err)
	}
	free := 0
	for number := range taken { // others may take some of them at once
		lock, err := lockPort(dir, number)
		if err != nil {
			t.Fatal(err)
		}
		if lock != nil {
			free++
			_ = lock.Close()
		}
	}
	if free == 0 {
		t.Error("no port was given back")
	}
}
