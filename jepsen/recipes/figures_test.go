package recipes

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The figures in README equal those in the pages that it refers to.
func TestREADME_figures(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(withoutCode(t, "../../README.md"), "**Figures**")
	figures, _, _ := strings.Cut(rest, "\n\n")
	sources := measured(t)
	numbers := regexp.MustCompile(`\d+(?:[.,]\d+)+|\b\d{3}\b`).FindAllString(figures, -1)
	if !found || len(numbers) < 5 {
		t.Fatalf("README has the figures %v", numbers)
	}
	for _, number := range numbers {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(number) + `\b`).MatchString(sources) {
			t.Errorf("no page has README's %s", number)
		}
	}
}

// measured returns the pages with measurements.
func measured(t *testing.T) string {
	t.Helper()
	return withoutCode(t, "../../docs/benchmarks.md") + withoutCode(t, "../../docs/limits.md")
}

// The rates of a cluster and the memory of a task in the pages are the measured ones.
func TestPages_figures(t *testing.T) {
	t.Parallel()
	sources := measured(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	figure := regexp.MustCompile(`(\d[\d,]*)(?: in batches| tasks a second| bytes (?:for one that waits|once it has ended|a task|each))`)
	found := 0
	for _, page := range append(pages, "../../README.md") {
		if filepath.Base(page) == "benchmarks.md" {
			continue
		}
		text := withoutCode(t, page)
		for _, m := range figure.FindAllStringSubmatch(text, -1) {
			found++
			if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(sources) {
				t.Errorf("%s: %q was not measured", page, m[0])
			}
		}
		if regexp.MustCompile(`(some|few|several) thousand(s of)? tasks`).MatchString(text) {
			t.Errorf("%s says thousands where benchmarks.md has a number", page)
		}
	}
	if found < 15 {
		t.Errorf("found only %d figures", found)
	}
}

// The table of sizes in production.md follows from the rows below it, which equal those in
// the pages that they refer to.
func TestProduction_sizing(t *testing.T) {
	t.Parallel()
	_, sizing, _ := strings.Cut(withoutCode(t, "../../docs/production.md"), "## Sizing")
	_, part, _ := strings.Cut(sizing, "| what | measured |")
	sources := measured(t)
	row := func(pattern string) float64 {
		m := regexp.MustCompile(`(?m)^\| ` + pattern).FindStringSubmatch(part)
		if m == nil {
			t.Fatalf("no row of production.md is %s", pattern)
		}
		if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(sources) {
			t.Errorf("%s was not measured", m[1])
		}
		return number(t, m[1])
	}
	waits, ended, remembered := row(`a waiting task \| (\d+) bytes`), row(`an ended task.* \| (\d+) bytes`), row(`a removed task.* \| (\d+) bytes`)
	log, network, cpu := row(`the log.* \| (\d+) bytes`), row(`network.* \| ([\d.]+) KB`), row(`processor.* \| (\d+) µs`)
	sizes := regexp.MustCompile(`(?m)^\| ([\d,]+) \| ([\d,]+) \| (\d+) (h|min) \| (.*) \|$`).FindAllStringSubmatch(sizing, -1)
	if len(sizes) < 5 {
		t.Fatalf("found only %d sizes", len(sizes))
	}
	for _, m := range sizes {
		rate, backlog, keep := number(t, m[1]), number(t, m[2]), number(t, m[3])*map[string]float64{"min": 60, "h": 3600}[m[4]]
		all := rate*keep*ended + rate*600*remembered + backlog*waits + 64<<20
		limit := max(4*rate*keep*ended, 4*rate*600*remembered, all)
		want := []string{
			fmt.Sprintf("%.1f GB", limit/1e9), fmt.Sprintf("%.1f GB", 2*limit/1e9), fmt.Sprintf("%.1f GB", (4*limit+2*256<<20+1<<30)/1e9),
			fmt.Sprintf("%.2f MB/s", rate*log/1e6), fmt.Sprintf("%.2f MB/s", rate*network/1e3), fmt.Sprintf("%.1f %%", rate*cpu/1e4),
		}
		if got := strings.Join(strings.Split(m[5], " | "), "; "); got != strings.Join(want, "; ") {
			t.Errorf("production.md: of %s tasks a second, %s waiting, kept for %s %s\n     %s\nwant %s", m[1], m[2], m[3], m[4], got, strings.Join(want, "; "))
		}
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
