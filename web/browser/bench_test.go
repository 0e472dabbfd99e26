package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/claimq/claimq/internal/testwait"
)

// shown is when the first view was there, painted, in the time of performance.now().
const shown = `window.shown = new Promise((done) => new MutationObserver((_, self) => {
	if (!document.querySelector(".view table tbody tr")) return;
	self.disconnect();
	requestAnimationFrame(() => setTimeout(() => done(performance.now())));
}).observe(document, {childList: true, subtree: true}))`

// What the overview and the types are looked at with.
const (
	largeTasks = 1_000_000
	largeTypes = 5000
	largeBatch = 1000
)

// The first load of the overview and of the types with a million tasks of 5,000 types: how
// long after the last answer they are painted, and how long the node took for the types.
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

// How large the heap of a live overview may be at the end, against that of its beginning.
const (
	heapGrowth = 1.1
	heapNoise  = 1 << 20
	heapFirst  = 3 // looks after which it is warm
	heapAsks   = 20
)

// A live overview of a cluster in which things happen: each look is after 20 refreshes, and
// by the end the heap must not have grown.
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
