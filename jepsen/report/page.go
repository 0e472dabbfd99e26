package report

import (
	"cmp"
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"os"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

//go:embed page.html
var pageText string

// page holds the data of the template.
type page struct {
	*history.History
	Title   string
	Verdict check.Verdict
	Picture *picture
	Calls   map[history.Kind]map[string]int // by outcome
	Codes   map[string]int                  // of answers other than ok
}

// WriteFile draws the run into the file at path.
func WriteFile(path string, h *history.History, v check.Verdict) error {
	p := page{History: h, Title: "claimq under faults", Verdict: v, Picture: draw(h), Calls: map[history.Kind]map[string]int{}, Codes: map[string]int{}}
	if r := h.Run; r != nil {
		p.Title = fmt.Sprintf("%d nodes, seed %d: %s", r.Nodes, h.Seed, cmp.Or(strings.Join(r.Faults, ", "), "no faults"))
	}
	p.count()
	functions := template.FuncMap{"seconds": func(ns int64) string { return fmt.Sprintf("%.2fs", time.Duration(ns).Seconds()) }}
	t, err := template.New("report").Funcs(functions).Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the report's template: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("draw the report: %w", err)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func (p *page) count() {
	for i := range p.Ops {
		op := &p.Ops[i]
		if p.Calls[op.Kind] == nil {
			p.Calls[op.Kind] = map[string]int{}
		}
		p.Calls[op.Kind][string(op.Outcome)]++
		if op.Outcome != history.OK {
			p.Codes[fmt.Sprintf("%s %s", op.Outcome, op.Code)]++
		}
	}
}
