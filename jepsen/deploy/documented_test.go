package deploy

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// checkDocumented checks that docs/metrics.md lists exactly the metrics of nodes, with
// their types and labels. Those of Go's runtime and the process are listed in part.
func checkDocumented(t *testing.T, all scrape) {
	listed := readDocumented(t)
	for name, m := range all {
		d := listed[name]
		if d == nil {
			if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
				t.Errorf("docs/metrics.md does not list %s", name)
			}
			continue
		}
		if d.kind != m.kind {
			t.Errorf("docs/metrics.md calls %s a %s, it is a %s", name, d.kind, m.kind)
		}
		if got, want := slices.Sorted(maps.Keys(d.labels)), slices.Sorted(maps.Keys(m.labels)); !slices.Equal(got, want) {
			t.Errorf("docs/metrics.md gives %s the labels %v, it has %v", name, got, want)
		}
	}
	for name := range listed {
		if all[name] == nil {
			t.Errorf("docs/metrics.md lists %s, which no node tells", name)
		}
	}
}

// readDocumented reads the tables of docs/metrics.md: rows of a name, a type, labels and a
// meaning.
func readDocumented(t *testing.T) map[string]*metric {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]*metric)
	ofNodes, _, _ := strings.Cut(string(text), "\n## claimq work\n") // that section is tested next to its package
	for line := range strings.Lines(ofNodes) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 6 || !strings.HasPrefix(cells[1], "`") {
			continue
		}
		name := strings.Trim(cells[1], "`")
		if listed[name] != nil {
			t.Errorf("docs/metrics.md lists %s twice", name)
		}
		if cells[4] == "" {
			t.Errorf("docs/metrics.md does not say what %s means", name)
		}
		m := &metric{kind: cells[2], labels: make(map[string]bool)}
		for label := range strings.FieldsSeq(strings.NewReplacer("`", "", ",", " ").Replace(cells[3])) {
			m.labels[label] = true
		}
		listed[name] = m
	}
	if len(listed) == 0 {
		t.Error("docs/metrics.md lists nothing")
	}
	return listed
}
