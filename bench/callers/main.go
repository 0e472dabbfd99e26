// Command callers draws tasks a second over the number of callers, as an SVG on standard output:
//
//	go run ./bench/callers < bench/callers/figures.csv > docs/img/callers.svg
//
// Its input are the figures that bench/peers writes with --figures. A line of the chart is a system, and a point the
// median of its rounds. `make bench-callers` measures and draws.
package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/bench/figures"
)

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "callers:", err)
		os.Exit(1)
	}
}

// line holds the rates of a system.
type line struct {
	system, version string
	rates           map[int][]float64 // tasks/s of each round, by the number of callers
}

// counts returns the numbers of callers in rising order.
func (l *line) counts() []int { return slices.Sorted(maps.Keys(l.rates)) }

// read reads figures: after the header a system, its version, the number of callers, and tasks/s.
func read(in io.Reader) (lines []*line, err error) {
	records, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		if i == 0 {
			continue
		}
		callers, err := strconv.Atoi(r[2])
		if err != nil || callers < 1 {
			return nil, fmt.Errorf("line %d: callers is %q, it must be a number above 0", i+1, r[2])
		}
		rate, err := strconv.ParseFloat(r[3], 64)
		if err != nil || rate <= 0 {
			return nil, fmt.Errorf("line %d: tasks_per_s is %q, it must be a number above 0", i+1, r[3])
		}
		at := slices.IndexFunc(lines, func(l *line) bool { return l.system == r[0] })
		if at < 0 {
			at = len(lines)
			lines = append(lines, &line{system: r[0], version: r[1], rates: map[int][]float64{}})
		}
		lines[at].rates[callers] = append(lines[at].rates[callers], rate)
	}
	if len(lines) == 0 {
		return nil, errors.New("there are no figures")
	}
	if len(lines) > len(strokes) {
		return nil, fmt.Errorf("there are %d systems, at most %d can be told apart", len(lines), len(strokes))
	}
	return lines, nil
}

// Pixels. The scale of callers is logarithmic.
const (
	width, height = 760, 360
	left, right   = 64, 600
	top, bottom   = 44, 310
)

// strokes are the classes of the lines, in the order of the systems.
var strokes = []string{"one", "two", "three", "four"}

// chart maps figures to pixels.
type chart struct {
	first, last int     // callers
	most        float64 // tasks/s
}

func (c *chart) x(callers int) float64 {
	span := max(math.Log(float64(c.last)/float64(c.first)), math.SmallestNonzeroFloat64)
	return left + math.Log(float64(callers)/float64(c.first))/span*(right-left)
}

func (c *chart) y(rate float64) float64 { return bottom - rate/c.most*(bottom-top) }

// draw reads figures and writes the chart.
func draw(in io.Reader, out io.Writer) error {
	lines, err := read(in)
	if err != nil {
		return fmt.Errorf("read figures: %w", err)
	}
	counts := lines[0].counts()
	c := chart{first: counts[0], last: counts[len(counts)-1]}
	for _, l := range lines {
		if !slices.Equal(l.counts(), counts) {
			return fmt.Errorf("%s was measured with %v callers, %s with %v", lines[0].system, counts, l.system, l.counts())
		}
		for _, rates := range l.rates {
			c.most = max(c.most, figures.Median(rates))
		}
	}
	step := stepOf(c.most)
	c.most = math.Ceil(c.most/step) * step
	var b strings.Builder
	fmt.Fprintf(&b, begin, width, height, title(lines, counts))
	for rate := 0.0; rate <= c.most; rate += step {
		fmt.Fprintf(&b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"small\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			left, c.y(rate), right, left-8, c.y(rate)+4, figures.Thousands(rate))
	}
	for _, n := range counts {
		fmt.Fprintf(&b, "<text class=\"small mid\" x=\"%.1f\" y=\"%d\">%s</text>\n", c.x(n), bottom+20, figures.Thousands(float64(n)))
	}
	fmt.Fprintf(&b, "<text class=\"small mid\" x=\"%d\" y=\"%d\">callers that submit, and as many that work</text>\n", (left+right)/2, bottom+40)
	for i, l := range lines {
		c.line(&b, l, strokes[i], counts)
	}
	b.WriteString("</svg>\n")
	_, err = io.WriteString(out, b.String())
	return err
}

// line draws the points of a system, connected, and its name at the last one.
func (c *chart) line(b *strings.Builder, l *line, stroke string, counts []int) {
	var path, points strings.Builder
	verb := 'M'
	for _, n := range counts {
		x, y := c.x(n), c.y(figures.Median(l.rates[n]))
		fmt.Fprintf(&path, "%c%.1f %.1f", verb, x, y)
		fmt.Fprintf(&points, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", stroke, x, y)
		verb = 'L'
	}
	end := figures.Median(l.rates[counts[len(counts)-1]])
	fmt.Fprintf(b, "<path class=\"line %s\" d=\"%s\"/>%s\n", stroke, path.String(), points.String())
	fmt.Fprintf(b, "<text class=\"bold\" x=\"%d\" y=\"%.1f\">%s</text><text class=\"small\" x=\"%d\" y=\"%.1f\">%s</text>\n",
		right+12, c.y(end)-2, l.system, right+12, c.y(end)+14, figures.Thousands(end))
}

// stepOf returns the distance of the grid's lines: 1, 2 or 5 times a power of ten, so that there are 4 to 8 below most.
func stepOf(most float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, times := range []float64{5, 2} {
		if most/(step*times) >= 4 {
			return step * times
		}
	}
	return step
}

// title says in words what the chart shows.
func title(lines []*line, counts []int) string {
	var b strings.Builder
	b.WriteString("Tasks a second over the number of callers.")
	for _, l := range lines {
		fmt.Fprintf(&b, " %s %s:", l.system, l.version)
		for i, n := range counts {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, " %s with %s", figures.Thousands(figures.Median(l.rates[n])), figures.Thousands(float64(n)))
		}
		b.WriteByte('.')
	}
	return b.String()
}

// begin is the beginning of the drawing, with its size and its title.
const begin = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="t">
<title id="t">%[3]s</title>
<style>
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 12px } .bold { font-weight: 600 } .mid { text-anchor: middle }
.bg { fill: #fff } .grid { stroke: #d0d7de } .line { stroke-width: 2; fill: none }
.one { stroke: #2f6fde; fill: #2f6fde } .two { stroke: #b35900; fill: #b35900 } .three { stroke: #2e8b57; fill: #2e8b57 } .four { stroke: #8250df; fill: #8250df } .line { fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .bg { fill: #0d1117 } .grid { stroke: #30363d }
.one { stroke: #6ea8fe; fill: #6ea8fe } .two { stroke: #f0a35e; fill: #f0a35e } .three { stroke: #56d364; fill: #56d364 } .four { stroke: #bc8cff; fill: #bc8cff } .line { fill: none }
}
</style>
<rect class="bg" width="%[1]d" height="%[2]d"/>
<text class="bold" x="8" y="22">Tasks a second (submit, claim, complete), three nodes and the load on one machine</text>
`
