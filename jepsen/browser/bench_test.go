package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/claimq/claimq/cmd/claimq/bench"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
)

// shown resolves to the time (of performance.now()) at which the first view was painted.
const shown = `window.shown = new Promise((done) => new MutationObserver((_, self) => {
	if (!document.querySelector(".view table tbody tr")) return;
	self.disconnect();
	requestAnimationFrame(() => setTimeout(() => done(performance.now())));
}).observe(document, {childList: true, subtree: true}))`

// Conditions for the overview and the types to be shown.
const (
	largeTasks = 1_000_000
	largeTypes = 5000
	largeBatch = 1000
)

// The first load of the overview and of the types with a million tasks of 5,000 types: the
// time from the last answer until they are painted, and the node's time for the types.
func BenchmarkLarge(b *testing.B) {
	n := cluster(b).Nodes[0]
	for at := 0; at < largeTasks; at += largeBatch {
		var ops []string
		for i := range largeBatch {
			ops = append(ops, fmt.Sprintf(`{"op":"submit","task_type":"type-%04d","params":%d}`, (at+i)%largeTypes, at+i))
		}
		call(b, n, "POST", "/api/batch", `{"return":"minimal","ops":[`+strings.Join(ops, ",")+`]}`)
	}
	for name, hash := range map[string]string{"overview": "#/", "types": "#/types"} {
		b.Run(name, func(b *testing.B) {
			at := open(b)
			at.enter(n.URL(), "ops")
			send(at, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: shown})
			eval[string](at, `location.hash = `+quote(hash))
			var paint, answer []float64
			for b.Loop() {
				do(at, chromedp.Reload())
				took := eval[[2]float64](at, `shown.then((at) => {
					const calls = performance.getEntriesByType("resource").filter((e) => /\/api\/|readyz/.test(e.name) && e.responseEnd < at), types = calls.find((e) => e.name.includes("/api/types"));
					return [at - Math.max(...calls.map((e) => e.responseEnd)), types.responseStart - types.requestStart];
				})`)
				paint, answer = append(paint, took[0]), append(answer, took[1])
			}
			slices.Sort(paint)
			slices.Sort(answer)
			b.ReportMetric(paint[len(paint)/2], "paint-ms")
			b.ReportMetric(paint[len(paint)-1], "paint-ms-max")
			b.ReportMetric(answer[len(answer)/2], "answer-ms")
		})
	}
}

// Bounds of the heap of a live overview at the end, compared with its beginning.
const (
	heapGrowth = 1.1
	heapNoise  = 1 << 20
	heapFirst  = 3 // looks until it is warm
	heapAsks   = 20
)

// A live overview of a busy cluster: each look is after 20 refreshes, and by the end the heap
// must not have grown.
func BenchmarkHeap(b *testing.B) {
	n := cluster(b).Nodes[0]
	d := openDoor(b, n, "")
	at := open(b)
	at.enter(d.URL, "ops")
	eval[bool](at, `(localStorage.setItem("claimq.settings", '{"refresh":1}'), true)`)
	do(at, chromedp.Reload())
	var used []float64
	for b.Loop() {
		asked := d.count("/api/types")
		testwait.Until(b, "the page has asked", func() bool { return d.count("/api/types") >= asked+heapAsks })
		id := failedTask(b, n, "soak", fmt.Sprint("error ", len(used)))
		call(b, n, "POST", fmt.Sprintf("/api/tasks/%d/retry", id), `{"add_attempts":1}`)
		send(at, heapprofiler.CollectGarbage, cdp.Empty{})
		used = append(used, send(at, runtime.GetHeapUsage, cdp.Empty{}).UsedSize)
	}
	at.clean("the overview")
	first, last := used[min(heapFirst, len(used)-1)], used[len(used)-1]
	b.ReportMetric(first/(1<<20), "MiB-first")
	b.ReportMetric(last/(1<<20), "MiB-last")
	b.ReportMetric(slices.Max(used)/(1<<20), "MiB-max")
	if last > first*heapGrowth+heapNoise {
		b.Errorf("the heap has grown from %.0f to %.0f bytes: %.0f", first, last, used)
	}
}

// pairLoad is the work of one measurement of BenchmarkPairs: some seconds on two cores.
var pairLoad = bench.Config{Mode: bench.Lifecycle, Conns: 64, Tasks: 30_000, Payload: 256, Batch: 1, RequestIDs: true, WarmUp: time.Second}

// pageCall is a call that a page made: its target, and the milliseconds since the page was
// opened.
type pageCall struct {
	Name string
	At   float64
}

// The cost of a page that is open on the leader's overview for a load. Each round measures the
// load without a page, with one, and with only the calls that it made, as if the browser were
// on another machine; the order varies. Results are compared with those without a page: tasks
// per second, and the nodes' CPU time per task.
func BenchmarkPairs(b *testing.B) {
	c, dir, err := start(false)
	b.Cleanup(func() {
		if c != nil {
			c.Close()
		}
		if dir != "" {
			_ = os.RemoveAll(dir) // a folder for temporary files
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	at := open(b)
	var calls []pageCall
	measure := func(leader *procs.Node, arm string) bench.Report {
		ctx, stop := context.WithCancel(b.Context())
		var replayed sync.WaitGroup
		defer replayed.Wait()
		defer stop()
		do(at, chromedp.Navigate("about:blank"))
		switch arm {
		case "page":
			do(at, chromedp.Navigate(leader.URL()+"/ui/"))
			at.until(`document.querySelector(".view") !== null`)
		case "calls":
			replayed.Go(func() { replay(ctx, calls) })
		}
		cfg := pairLoad
		cfg.Endpoints = []string{leader.URL()}
		report, err := bench.Run(ctx, cfg)
		if err != nil {
			b.Fatal(err)
		}
		if arm == "page" {
			at.clean("the overview under load")
			calls = eval[[]pageCall](at, `performance.getEntriesByType("resource").filter((e) => /\/api\/|readyz/.test(e.name)).map((e) => ({Name: e.name, At: e.startTime}))`)
		}
		return report
	}
	arms, ratios := []string{"page", "calls", ""}, make(map[string][]float64)
	for b.Loop() {
		leader, err := c.WaitLeader(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		by := make(map[string]bench.Report)
		for _, arm := range arms {
			by[arm] = measure(leader, arm)
		}
		arms = append(arms[1:], arms[0])
		cpu := func(r bench.Report) float64 { return r.ServerCPU / float64(r.Tasks) }
		for _, arm := range []string{"page", "calls"} {
			rate, cost := by[arm].TasksPerSecond/by[""].TasksPerSecond, cpu(by[arm])/cpu(by[""])
			ratios[arm+"-rate"] = append(ratios[arm+"-rate"], rate)
			ratios[arm+"-cpu"] = append(ratios[arm+"-cpu"], cost)
			b.Logf("%s: %.0f tasks/s, %.0f without: %.3f; the nodes' CPU time of a task %.3f", arm, by[arm].TasksPerSecond, by[""].TasksPerSecond, rate, cost)
		}
	}
	for name, all := range ratios {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name+"-ratio")
		b.Logf("%s: median %.4f, quartiles %.4f and %.4f of %d rounds", name, all[len(all)/2], all[len(all)/4], all[len(all)*3/4], len(all))
	}
}

// replay makes a page's calls with their timing, again and again until ctx ends.
func replay(ctx context.Context, calls []pageCall) {
	for len(calls) > 0 {
		begin := time.Now()
		for _, c := range calls {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(begin.Add(time.Duration(c.At * float64(time.Millisecond))))):
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Name, nil)
			if err != nil {
				panic(err) // a browser has asked for it before
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body) // only the request matters
				_ = resp.Body.Close()
			}
		}
	}
}
