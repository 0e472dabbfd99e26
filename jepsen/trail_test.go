package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/recorder"
	"github.com/claimq/claimq/jepsen/workload"
)

const (
	trailTasks = 300
	trailKills = 2
)

// Readers that follow the trail, at one node or from node to node, see every event once and
// in order while leaders are killed and started again; and the audit file of each node has
// the same events.
func TestTrail_sameEverywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := procs.New(procs.Config{Binary: binary(), Dir: dir, Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, n := range c.Nodes {
		n.SetFlag("--audit-file", filepath.Join(dir, n.ID+".audit"))
	}
	if err := c.StartAll(deadline(t)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	tails := []*tail{newTail(37, c.Nodes...), newTail(0, c.Nodes[2], c.Nodes[1], c.Nodes[0])}
	for _, n := range c.Nodes {
		tails = append(tails, newTail(0, n))
	}
	var following sync.WaitGroup
	defer following.Wait()
	defer stop()
	for i, tail := range tails {
		following.Go(func() {
			if err := tail.run(ctx); err != nil {
				t.Errorf("tail %d: %v", i, err)
			}
		})
	}
	loadAndKill(t, c)

	leader, err := c.WaitLeader(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := recorder.ReadTrail(deadline(t), leader.Ask, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 3*trailTasks {
		t.Errorf("the trail has %d events of %d tasks", len(want), trailTasks)
	}
	for i, tail := range tails {
		got, err := tail.wait(deadline(t), len(want))
		if err != nil {
			t.Errorf("tail %d: %v", i, err)
			continue
		}
		t.Logf("tail %d: %d events over %d connections", i, len(got), tail.conns())
		compareTrail(t, "a stream", want, got)
	}
	if tails[0].conns() < 10 {
		t.Errorf("the tail that goes from node to node opened %d connections", tails[0].conns())
	}
	for _, n := range c.Nodes {
		compareTrail(t, "the audit file of "+n.ID, want, auditLines(t, filepath.Join(dir, n.ID+".audit"), len(want)))
	}
}

// The client and the command line read the whole trail, whose newest entry has more events
// than fit in a page, and see the same as the node shows.
func TestTrail_walkedToTheEndOfItsNewestEntry(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	node := c.Nodes[0].URL()
	walker, err := client.New(client.Config{Endpoints: []string{node}})
	if err != nil {
		t.Fatal(err)
	}
	defer walker.Close()
	parent := client.Task{TaskType: "wide"}
	for i := range stepsMax {
		parent.AddStep(strconv.Itoa(i), client.Task{TaskType: "step", Payload: []byte("{}")})
	}
	if _, err := walker.Submit(deadline(t), parent); err != nil {
		t.Fatal(err)
	}
	want, err := recorder.ReadTrail(deadline(t), c.Nodes[0].Ask, false)
	if err != nil {
		t.Fatal(err)
	}
	trail, err := recorder.ParseTrail(want)
	if err != nil || trail[len(trail)-1].Sub != stepsMax {
		t.Fatalf("the trail ends with %+v, %v", trail[len(trail)-1], err)
	}
	walked := 0
	for e, err := range walker.Events(deadline(t), client.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if at := fmt.Sprintf("%d.%d", trail[walked].Index, trail[walked].Sub); e.Place != at {
			t.Fatalf("the client's event %d is %s, want %s", walked, e.Place, at)
		}
		walked++
	}
	if walked != len(want) {
		t.Errorf("the client walks %d of %d events", walked, len(want))
	}
	out, err := exec.CommandContext(deadline(t), binary(), "events", "--output", "json", "--endpoint", node).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("the command line shows %d of %d events", len(lines), len(want))
	}
	compareTrail(t, "the command line", want, lines)
}

// stepsMax bounds the steps of a parent.
const stepsMax = 1000

// An audit file that was moved away is continued in a new one on SIGHUP.
func TestTrail_auditFileIsOpenedAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit")
	c := newCluster(t, 1, "--audit-file", path)
	user := newUser(t, c)
	user.submit(10, 10)
	before, err := recorder.ReadTrail(deadline(t), c.Nodes[0].Ask, false)
	if err != nil {
		t.Fatal(err)
	}
	compareTrail(t, "the audit file", before, auditLines(t, path, len(before)))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes[0].Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for ctx := deadline(t); ; { // until it exists
		if _, err := os.Stat(path); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("no new file after SIGHUP")
		case <-time.After(tailPause):
		}
	}
	user.submit(10, 10)
	all, err := recorder.ReadTrail(deadline(t), c.Nodes[0].Ask, false)
	if err != nil {
		t.Fatal(err)
	}
	after := all[len(before):]
	lines := auditLines(t, path, 1+len(after))
	if !strings.Contains(lines[0], `"event":"continued"`) {
		t.Errorf("the new file begins with %s", lines[0])
	}
	compareTrail(t, "the new audit file", after, lines[1:])
}

// loadAndKill lets tasks be submitted and worked on while leaders are killed.
func loadAndKill(t *testing.T, c *procs.Cluster) {
	t.Helper()
	rec := recorder.New(1)
	defer rec.Close()
	ctx, stop := context.WithTimeout(t.Context(), 3*stepTimeout)
	defer stop()
	load := workload.Start(ctx, rec, workload.Config{Nodes: c.URLs(), Rate: 1000, Seed: 1, Busy: true})
	defer load.Stop()
	for round := range trailKills {
		if err := load.WaitSubmitted(ctx, (round+1)*trailTasks/(trailKills+1)); err != nil {
			t.Fatal(err)
		}
		if err := killOne(deadline(t), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := load.WaitSubmitted(ctx, trailTasks); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := pause.Within(t.Context(), 3*stepTimeout, load.Drain); err != nil {
		t.Fatal(err)
	}
}

// auditLines returns the first count lines of an audit file, once they are there.
func auditLines(t *testing.T, path string, count int) []string {
	t.Helper()
	for ctx := deadline(t); ; {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(b), "\n")
		if len(lines) > count {
			return lines[:count]
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s has %d lines, want %d", path, len(lines)-1, count)
		case <-time.After(tailPause):
		}
	}
}

// compareTrail compares what a reader has seen with the trail.
func compareTrail(t *testing.T, what string, want, got []string) {
	t.Helper()
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("%s: event %d is\n%s, want\n%s", what, i, got[i], want[i])
			return
		}
	}
}
