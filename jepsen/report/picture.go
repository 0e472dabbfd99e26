package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

const (
	// binLength is the time of one column in the chart.
	binLength = 500 * time.Millisecond
	// outageMin is the time without an acknowledged change from which on it is shown as
	// unavailability.
	outageMin = time.Second
	width     = 1000 // of the picture, without the names on the left
	rowHeight = 20
	chart     = 110
	ticks     = 12 // of the axis, about
)

// bar is the only element of a picture. Class is its colour.
type bar struct {
	X, Y, W, H         float64
	Class, Title, Text string
}

// TextY returns the position of the text: in the bar, or below it if that is a line.
func (b bar) TextY() float64 {
	if b.Class == "axis" {
		return b.Y + b.H + 12
	}
	return b.Y + 12
}

// picture is a run, drawn from the top down.
type picture struct {
	Bars   []bar
	Names  []bar // texts to the left
	Height float64
	end    time.Duration
}

// draw draws the run: faults, the state of each node, calls, and in red the times without
// an acknowledged change.
func draw(h *history.History) *picture {
	p := &picture{end: time.Second}
	for i := range h.Ops {
		p.end = max(p.end, time.Duration(h.Ops[i].Return))
	}
	for i := range h.Samples {
		p.end = max(p.end, time.Duration(h.Samples[i].At))
	}
	p.faults(h)
	p.nodes(h)
	p.calls(h)
	p.outages(h)
	step := max((p.end / ticks).Round(time.Second), time.Second)
	for at := time.Duration(0); at <= p.end; at += step {
		p.bar(at, at, 0, p.Height, "axis", "", at.String())
	}
	return p
}

// bar adds a bar. Later bars cover earlier ones.
func (p *picture) bar(from, to time.Duration, y, height float64, class, title, text string) {
	x := width * from.Seconds() / p.end.Seconds()
	p.Bars = append(p.Bars, bar{x, y, max(width*(to-from).Seconds()/p.end.Seconds(), 1), height, class, title, text})
}

// row begins a row, and returns its position.
func (p *picture) row(name string, height float64) (y float64) {
	y = p.Height
	p.Names = append(p.Names, bar{Y: y + 14, Text: name})
	p.Height += height
	return y
}

func (p *picture) span(from, to time.Duration, y float64, class, name, text string) {
	p.bar(from, to, y, rowHeight-4, class, fmt.Sprintf("%s, %.1fs to %.1fs", name, from.Seconds(), to.Seconds()), text)
}

func (p *picture) faults(h *history.History) {
	rows := map[string]float64{}
	for i := range h.Events {
		e := &h.Events[i]
		if e.Kind != history.Injected {
			continue
		}
		if _, ok := rows[e.Fault]; !ok {
			rows[e.Fault] = p.row(e.Fault, rowHeight)
		}
		to := time.Duration(h.Over(i, int64(p.end)))
		p.span(time.Duration(e.At), to, rows[e.Fault], "fault", e.Fault, "")
	}
}

func (p *picture) nodes(h *history.History) {
	samples := slices.Clone(h.Samples)
	slices.SortStableFunc(samples, func(a, b history.Sample) int { return cmp.Compare(a.Node, b.Node) })
	for len(samples) > 0 {
		s := samples[0]
		if len(p.Names) == 0 || p.Names[len(p.Names)-1].Text != s.Node {
			p.row(s.Node, rowHeight)
		}
		to := p.end
		n := slices.IndexFunc(samples, func(o history.Sample) bool { return o.Node != s.Node || o.Leads != s.Leads || o.Up != s.Up })
		if n < 0 {
			n = len(samples)
		} else if samples[n].Node == s.Node {
			to = time.Duration(samples[n].At)
		}
		state, term := "down", ""
		switch {
		case s.Leads:
			state, term = "leads", fmt.Sprint(s.Term)
		case s.Up:
			state = "up"
		}
		p.span(time.Duration(s.At), to, p.Height-rowHeight, state, s.Node+" "+state, term)
		samples = samples[n:]
	}
}

// calls draws calls per second, by outcome.
func (p *picture) calls(h *history.History) {
	bins := make([]map[history.Outcome]int, int(p.end/binLength)+1)
	for i := range bins {
		bins[i] = map[history.Outcome]int{}
	}
	most := 1
	for i := range h.Ops {
		op := &h.Ops[i]
		if i > 0 && op.Process == h.Ops[i-1].Process && op.Call == h.Ops[i-1].Call {
			continue // a call of several tasks is several ops
		}
		bin := bins[int(time.Duration(op.Return)/binLength)]
		bin[op.Outcome]++
		most = max(most, bin[history.OK]+bin[history.Failed]+bin[history.Unknown])
	}
	y := p.row(fmt.Sprintf("calls/s, to %d", most*int(time.Second/binLength)), chart) + chart - 5
	for i, bin := range bins {
		from, to, top := time.Duration(i)*binLength, min(time.Duration(i+1)*binLength, p.end), y
		for _, outcome := range []history.Outcome{history.OK, history.Failed, history.Unknown} {
			if n := bin[outcome]; n > 0 {
				height := float64(n) / float64(most) * (chart - 10)
				top -= height
				p.bar(from, to, top, height, string(outcome), fmt.Sprintf("%v: %d %s", from, n, outcome), "")
			}
		}
	}
}

func (p *picture) outages(h *history.History) {
	for _, s := range h.Standstills(outageMin) {
		p.bar(time.Duration(s.From), time.Duration(s.To), 0, p.Height, "outage", fmt.Sprintf("no acknowledged change for %v", time.Duration(s.To-s.From).Round(time.Millisecond)), "")
	}
}
