package main

import (
	"bufio"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/testwait"
)

// watchCases returns command lines that look once at what top shows.
func watchCases() []cliCase {
	const (
		cluster = "GET /api/cluster"
		types   = "GET /api/types?order=pending&limit=20"
		workers = "GET /api/workers"
	)
	one := func(call, answer string) map[string]string { return map[string]string{call: answer} }
	forbidden := `403 {"success":false,"error":"This key may do nothing","code":"forbidden","message":"Use another","request_id":"r1"}`
	many := strings.TrimSuffix(strings.Repeat(`{"worker_id":"w","claimed":0,"task_ids":[],"last_seen_at":null},`, topRows+2), ",")
	return []cliCase{
		{name: "top", args: []string{"top", "--once"}, answers: map[string]string{
			cluster: `200 {"success":true,"leader":"n1","term":9,"feature_level":1,"nodes":[` + cliNode("n1", "voter", "leader", true, "") + `]}`,
			types:   `200 {"success":true,"types":[` + cliType + `],"total":9,"matched":4}`,
			workers: `200 {"success":true,"workers":[` + many + `]}`,
		}},
		{name: "top without a leader", args: []string{"top", "--once"}, answers: map[string]string{
			cluster:                        `200 {"success":true,"leader":"","term":9,"feature_level":1,"nodes":[` + cliNode("n1", "voter", "follower", true, "") + `]}`,
			types + "&consistency=stale":   `200 {"success":true,"types":[` + cliType + `],"total":1,"matched":1}`,
			workers + "?consistency=stale": `200 {"success":true,"workers":[]}`,
		}},
		{name: "top of a reader", args: []string{"top", "--once"}, answers: map[string]string{
			cluster: forbidden, types: `200 {"success":true,"types":[]}`, workers: `200 {"success":true,"workers":[]}`,
		}},
		{name: "top refused", args: []string{"top", "--interval", "200ms"}, want: 1, answers: map[string]string{cluster: forbidden, types: forbidden, workers: forbidden}},
		{name: "top no server", args: []string{"top", "--once", "--timeout", "100ms"}, want: 3, answers: one(cluster, "break")},
		{name: "top too often", args: []string{"top", "--interval", "100ms"}, want: 2},
		{name: "top too seldom", args: []string{"top", "--interval", "2m"}, want: 2},
		{name: "top of a type", args: []string{"top", "--type", "mail"}, want: 2},
	}
}

// top looks again at each interval until it is interrupted, also while no node answers. Only on a terminal it clears
// the screen.
func TestTop_looksAgain(t *testing.T) {
	t.Parallel()
	for name, width := range map[string]int{"terminal": 80, "pipe": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&fakeAPI{answers: map[string]string{
				"GET /api/cluster": `200 {"success":true,"leader":"n1","term":1,"nodes":[]}`, "GET /api/types?order=pending&limit=20": `200 {"success":true,"types":[]}`,
				"GET /api/workers": `200 {"success":true,"workers":[]}`,
			}})
			defer server.Close()
			ctx, stop := context.WithCancel(t.Context()) // with a deadline, --timeout would not bound its calls
			reads, writes := io.Pipe()
			failed := make(chan struct{}, 1)
			var wg sync.WaitGroup
			wg.Go(func() {
				a := &term.App{Stdin: strings.NewReader(""), Stdout: writes, Stderr: tellsOnce(failed), Width: width}
				if code := run(ctx, a, []string{"top", "--interval", "200ms", "--timeout", "200ms", "--endpoint", server.URL}); code != term.ExitDone {
					t.Errorf("exit code %d", code)
				}
				writes.Close()
			})
			defer wg.Wait()
			defer reads.Close()
			defer stop()
			lines, looks := bufio.NewScanner(reads), 0
			for looks < 3 && lines.Scan() {
				if strings.HasSuffix(lines.Text(), " UTC") {
					looks++
					if cleared := strings.HasPrefix(lines.Text(), "\x1b[H\x1b[2J"); cleared != (width > 0) {
						t.Errorf("look %d begins with %q", looks, lines.Text())
					}
				}
			}
			if looks < 3 {
				t.Fatalf("it ended after %d looks", looks)
			}
			server.Close()
			go func() { _, _ = io.Copy(io.Discard, reads) }()
			select {
			case <-failed:
			case <-time.After(testwait.Patience):
				t.Error("it does not say that no node answers")
			}
		})
	}
}

// tellsOnce is a writer that signals that something was written.
type tellsOnce chan struct{}

func (w tellsOnce) Write(b []byte) (int, error) {
	select {
	case w <- struct{}{}:
	default:
	}
	return len(b), nil
}
