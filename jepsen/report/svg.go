package report

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// Sizes of the picture, in pixels.
const (
	width       = 1160
	left        = 120 // where time 0 is
	right       = 20
	rowHeight   = 22
	chartHeight = 130
	gap         = 26
)

// Colours.
const (
	inkSoft      = "#667085"
	gridline     = "#e4e7ec"
	colourOK     = "#2e90fa"
	colourFail   = "#98a2b3"
	colourLost   = "#f04438"
	colourFault  = "#fdb022"
	colourLead   = "#12b76a"
	colourUp     = "#d1fadf"
	colourDown   = "#475467"
	colourOutage = "#fee4e2"
)

// picture is an SVG being drawn from the top down.
type picture struct {
	b   strings.Builder
	y   float64 // where the next row begins
	end time.Duration
}

// draw draws the figures as one SVG.
func draw(f figures) string {
	p := &picture{end: f.end, y: 8}
	var body strings.Builder
	p.faults(f.faults)
	top := p.y
	p.nodes(f.nodes, f.changes)
	p.rates(f.bins)
	p.latencies(f.bins)
	p.axis(top)
	body.WriteString(p.b.String())
	var under strings.Builder // behind everything
	for _, o := range f.outages {
		fmt.Fprintf(&under, `<rect x="%.1f" y="0" width="%.1f" height="%.1f" fill="%s"><title>no acknowledged change for %v</title></rect>`,
			p.x(o.from), max(p.x(o.to)-p.x(o.from), 1), p.y-18, colourOutage, (o.to - o.from).Round(10*time.Millisecond))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" font-family="system-ui, sans-serif" font-size="12">%s%s</svg>`,
		width, p.y+8, width, p.y+8, under.String(), body.String())
}

// x returns where a time is.
func (p *picture) x(at time.Duration) float64 {
	return left + (width-left-right)*at.Seconds()/p.end.Seconds()
}

func (p *picture) text(x, y float64, anchor, colour, s string) {
	fmt.Fprintf(&p.b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`, x, y, anchor, colour, html.EscapeString(s))
}

func (p *picture) rect(x, y, w, h float64, colour, title string) {
	fmt.Fprintf(&p.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="%s"><title>%s</title></rect>`, x, y, max(w, 1), h, colour, html.EscapeString(title))
}

func (p *picture) line(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(&p.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x1, y1, x2, y2, colour)
}

// faults draws each fault as a bar with its name, in as few rows as there is
// room in.
func (p *picture) faults(all []span) {
	const letter = 6.6 // about
	var free []float64 // from where each row is free
	for _, s := range all {
		x1, x2 := p.x(s.from), p.x(s.to)
		textAt, anchor := x1+4, "start"
		need := x1 + max(x2-x1, float64(len(s.name))*letter+8)
		if need > width-right { // it is written to the left of the end
			textAt, anchor, need = x2-4, "end", width
		}
		row := 0
		for row < len(free) && free[row] > x1 {
			row++
		}
		if row == len(free) {
			free = append(free, 0)
		}
		free[row] = need + 4
		y := p.y + float64(row)*rowHeight
		p.rect(x1, y, x2-x1, rowHeight-4, colourFault, fmt.Sprintf("%s, %.1fs to %.1fs", s.name, s.from.Seconds(), s.to.Seconds()))
		p.text(textAt, y+13, anchor, "#1d2939", s.name)
	}
	p.text(left-10, p.y+13, "end", inkSoft, "faults")
	p.y += float64(max(len(free), 1))*rowHeight + gap/2
}

// nodes draws, per node, when it led, was up, or did not answer.
func (p *picture) nodes(rows []nodeRow, changes []change) {
	colours := map[string]string{"leader": colourLead, "up": colourUp, "down": colourDown}
	for i, row := range rows {
		y := p.y + float64(i)*rowHeight
		p.text(left-10, y+13, "end", inkSoft, row.name)
		for _, s := range row.states {
			p.rect(p.x(s.from), y, p.x(s.to)-p.x(s.from), rowHeight-4, colours[s.name],
				fmt.Sprintf("%s: %s, %.1fs to %.1fs", row.name, s.name, s.from.Seconds(), s.to.Seconds()))
		}
		for _, c := range changes {
			if c.node == row.name {
				p.text(p.x(c.at)+3, y+13, "start", "#054f31", fmt.Sprintf("%d", c.term))
			}
		}
	}
	p.y += float64(len(rows)) * rowHeight
	p.legend([][2]string{{colourLead, "leads (term)"}, {colourUp, "answers"}, {colourDown, "does not answer"}, {colourOutage, "no acknowledged change for 1 s or more"}})
	p.y += gap
}

// legend draws what the colours mean, in a line.
func (p *picture) legend(items [][2]string) {
	x := float64(left)
	p.y += 12
	for _, item := range items {
		fmt.Fprintf(&p.b, `<rect x="%.1f" y="%.1f" width="10" height="10" rx="2" fill="%s" stroke="#98a2b3" stroke-width="0.5"/>`, x, p.y-9, item[0])
		p.text(x+15, p.y, "start", inkSoft, item[1])
		x += 15 + 7*float64(len(item[1])) + 18
	}
}

// rates draws calls per second, by outcome, one on the other.
func (p *picture) rates(bins []bin) {
	most := 1
	for _, b := range bins {
		most = max(most, b.ok+b.failed+b.unknown)
	}
	perSecond := float64(time.Second / binLength)
	top := niceTop(float64(most) * perSecond)
	base := p.y + chartHeight
	p.scale("calls per second", base, func(v float64) float64 { return v / top }, []float64{0, top / 2, top}, func(v float64) string { return fmt.Sprintf("%.0f", v) })
	for i, b := range bins {
		x1, x2 := p.x(time.Duration(i)*binLength), p.x(min(time.Duration(i+1)*binLength, p.end))
		y := base
		for _, part := range []struct {
			count  int
			colour string
			name   string
		}{{b.ok, colourOK, "ok"}, {b.failed, colourFail, "refused"}, {b.unknown, colourLost, "unknown"}} {
			h := float64(part.count) * perSecond / top * chartHeight
			if part.count > 0 {
				y -= h
				p.rect(x1, y, max(x2-x1-1, 1), h, part.colour, fmt.Sprintf("%.1fs: %d %s", (time.Duration(i)*binLength).Seconds(), part.count, part.name))
			}
		}
	}
	p.y = base
	p.legend([][2]string{{colourOK, "ok"}, {colourFail, "refused"}, {colourLost, "unknown outcome"}})
	p.y += gap
}

// latencies draws how long answered calls took, on a logarithmic scale.
func (p *picture) latencies(bins []bin) {
	const least, most = 0.2e-3, 10.0 // seconds
	at := func(v float64) float64 {
		return math.Log(max(min(v, most), least)/least) / math.Log(most/least)
	}
	base := p.y + chartHeight
	p.scale("latency", base, at, []float64{1e-3, 10e-3, 100e-3, 1, 10}, func(v float64) string {
		return time.Duration(v * float64(time.Second)).String()
	})
	for _, curve := range []struct {
		q      float64
		colour string
	}{{0.5, colourOK}, {0.99, "#7a5af8"}, {1, "#d0d5dd"}} {
		p.curve(bins, base, curve.q, curve.colour, at)
	}
	p.y = base
	p.legend([][2]string{{colourOK, "median"}, {"#7a5af8", "99 %"}, {"#d0d5dd", "slowest"}})
	p.y += gap
}

// curve draws a quantile of the latencies, with a gap where nothing was
// answered.
func (p *picture) curve(bins []bin, base, q float64, colour string, at func(float64) float64) {
	var points []string
	flush := func() {
		if len(points) > 0 {
			fmt.Fprintf(&p.b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-linecap="round"/>`, strings.Join(points, " "), colour)
		}
		points = nil
	}
	for i, b := range bins {
		if len(b.took) == 0 {
			flush()
			continue
		}
		points = append(points, fmt.Sprintf("%.1f,%.1f", p.x(time.Duration(i)*binLength+binLength/2), base-at(quantile(b.took, q).Seconds())*chartHeight))
	}
	flush()
}

// scale draws a chart's lines and what they stand for.
func (p *picture) scale(name string, base float64, at func(float64) float64, values []float64, say func(float64) string) {
	for _, v := range values {
		y := base - at(v)*chartHeight
		p.line(left, y, width-right, y, gridline)
		p.text(left-10, y+4, "end", inkSoft, say(v))
	}
	p.text(4, base-chartHeight-6, "start", inkSoft, name)
}

// axis draws the time under everything, and lines up to top.
func (p *picture) axis(top float64) {
	step := 5 * time.Second
	for p.end/step > 16 {
		step *= 2
	}
	for at := time.Duration(0); at <= p.end; at += step {
		x := p.x(at)
		fmt.Fprintf(&p.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="2 4"/>`, x, top, x, p.y-16, "#d0d5dd")
		p.text(x, p.y, "middle", inkSoft, at.String())
	}
	p.y += 6
}

// niceTop returns a round number not below v.
func niceTop(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 6, 8, 10} {
		if v <= m*unit {
			return m * unit
		}
	}
	return v
}
