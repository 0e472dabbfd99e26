package report

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/judge"
)

// WriteFile draws the run into the file at path.
func WriteFile(path string, h *history.History, v judge.Verdict) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create report: %w", err)
	}
	defer func() {
		if errClose := f.Close(); err == nil && errClose != nil {
			err = fmt.Errorf("close report: %w", errClose)
		}
	}()
	return Write(f, h, v)
}

// page is what the template shows.
type page struct {
	Title   string
	OK      bool
	Facts   [][2]string
	Picture template.HTML
	Parts   []check.Part
	Calls   []callRow
	Codes   [][2]string
	Outages []string
	Events  []eventRow
	Found   string
}

type callRow struct {
	Kind                string
	OK, Failed, Unknown int
	P50, P99, Max       time.Duration
}

type eventRow struct {
	At   string
	Text string
	Kind string
}

// Write draws the run.
func Write(w io.Writer, h *history.History, v judge.Verdict) error {
	f := figuresOf(h)
	p := page{
		Title: "claimq under faults", OK: v.OK(), Picture: template.HTML(draw(f)), Parts: v.Parts,
		Calls: callRows(h), Codes: codes(h), Events: events(h),
	}
	if h.Run != nil {
		p.Title = fmt.Sprintf("%d nodes, seed %d: %s", h.Run.Nodes, h.Seed, cmp.Or(strings.Join(h.Run.Faults, ", "), "no faults"))
		p.Facts = [][2]string{
			{"started", h.Run.Started},
			{"revision", h.Run.Revision},
			{"load", fmt.Sprintf("%d s", h.Run.Seconds)},
			{"calls", fmt.Sprint(len(h.Ops))},
			{"of unknown outcome", fmt.Sprint(h.UnknownCount())},
			{"changes of leader", fmt.Sprint(max(len(f.changes)-1, 0))},
		}
		if h.Run.Plant != "" {
			p.Facts = append(p.Facts, [2]string{"planted bug", h.Run.Plant})
		}
	}
	for _, o := range f.outages {
		p.Outages = append(p.Outages, fmt.Sprintf("%.1fs to %.1fs (%v)", o.from.Seconds(), o.to.Seconds(), (o.to-o.from).Round(10*time.Millisecond)))
	}
	if !p.OK {
		p.Found = v.String()
	}
	if err := pageTemplate().Execute(w, p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func callRows(h *history.History) []callRow {
	rows := map[history.Kind]*callRow{}
	took := map[history.Kind][]time.Duration{}
	for i := range h.Ops {
		op := &h.Ops[i]
		row := rows[op.Kind]
		if row == nil {
			row = &callRow{Kind: string(op.Kind)}
			rows[op.Kind] = row
		}
		switch op.Outcome {
		case history.OK:
			row.OK++
		case history.Unknown:
			row.Unknown++
			continue
		default:
			row.Failed++
		}
		took[op.Kind] = append(took[op.Kind], time.Duration(op.Return-op.Call))
	}
	var all []callRow
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		row, t := rows[kind], took[kind]
		slices.Sort(t)
		row.P50, row.P99, row.Max = short(quantile(t, 0.5)), short(quantile(t, 0.99)), short(quantile(t, 1))
		all = append(all, *row)
	}
	return all
}

func short(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// codes counts what was answered that was not ok, the most frequent first.
func codes(h *history.History) [][2]string {
	counts := map[string]int{}
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Outcome != history.OK {
			counts[fmt.Sprintf("%s %s", op.Outcome, op.Code)]++
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	var all [][2]string
	for _, name := range names {
		all = append(all, [2]string{name, fmt.Sprint(counts[name])})
	}
	return all
}

func events(h *history.History) []eventRow {
	var all []eventRow
	for i := range h.Events {
		e := &h.Events[i]
		all = append(all, eventRow{fmt.Sprintf("%.2fs", time.Duration(e.At).Seconds()), e.Text, string(e.Kind)})
	}
	return all
}

// pageTemplate returns the page.
func pageTemplate() *template.Template { return template.Must(template.New("report").Parse(pageText)) }

const pageText = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; color: #1d2939; max-width: 1180px; margin: 24px auto; padding: 0 12px; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 26px 0 8px; }
.verdict { display: inline-block; padding: 2px 12px; border-radius: 12px; color: #fff; font-weight: 600; }
.pass { background: #12b76a; } .fail { background: #f04438; }
.facts { color: #667085; margin: 6px 0 14px; } .facts b { color: #1d2939; font-weight: 600; }
table { border-collapse: collapse; } td, th { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid #eaecf0; vertical-align: top; }
th { color: #667085; font-weight: 500; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.ok { color: #027a48; font-weight: 600; } .bad { color: #b42318; font-weight: 600; }
pre { background: #fef3f2; border: 1px solid #fecdca; padding: 10px; overflow-x: auto; font-size: 12px; }
.columns { display: flex; gap: 48px; flex-wrap: wrap; } svg { max-width: 100%; height: auto; }
.injected td { color: #b54708; } .healed td { color: #027a48; } .exited td { color: #b42318; font-weight: 600; }
</style></head><body>
<h1>{{.Title}}</h1>
<span class="verdict {{if .OK}}pass">the run passes{{else}}fail">the run fails{{end}}</span>
<p class="facts">{{range .Facts}}{{index . 0}} <b>{{index . 1}}</b> &nbsp; {{end}}</p>
{{.Picture}}
<h2>Checks</h2>
<table>{{range .Parts}}<tr><td>{{if .OK}}<span class="ok">ok</span>{{else}}<span class="bad">{{.ViolationCount}} found{{if .Undecided}}, {{len .Undecided}} undecided{{end}}</span>{{end}}</td><td>{{.Name}}</td><td>{{.Summary}}</td></tr>{{end}}</table>
{{if .Found}}<h2>Found</h2><pre>{{.Found}}</pre>{{end}}
<div class="columns">
<div><h2>Calls</h2>
<table><tr><th>call</th><th class="n">ok</th><th class="n">refused</th><th class="n">unknown</th><th class="n">median</th><th class="n">99 %</th><th class="n">slowest</th></tr>
{{range .Calls}}<tr><td>{{.Kind}}</td><td class="n">{{.OK}}</td><td class="n">{{.Failed}}</td><td class="n">{{.Unknown}}</td><td class="n">{{.P50}}</td><td class="n">{{.P99}}</td><td class="n">{{.Max}}</td></tr>
{{end}}</table></div>
<div><h2>Answers that were not ok</h2><table>{{range .Codes}}<tr><td>{{index . 0}}</td><td class="n">{{index . 1}}</td></tr>{{end}}</table></div>
<div><h2>Without any acknowledged change</h2>{{if .Outages}}<table>{{range .Outages}}<tr><td>{{.}}</td></tr>{{end}}</table>{{else}}<p>never for a second or more</p>{{end}}</div>
</div>
<h2>What happened</h2>
<table>{{range .Events}}<tr class="{{.Kind}}"><td class="n">{{.At}}</td><td>{{.Text}}</td></tr>
{{end}}</table>
</body></html>
`
