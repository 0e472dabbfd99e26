package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// dashboard holds the parts of grafana/claimq.json that the tests check.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Panels        []panel
	Templating    struct{ List []variable }
}

type variable struct {
	Name  string
	Query any
}

// queryText returns the text of the variable's query.
func (v variable) queryText() string {
	if q, ok := v.Query.(map[string]any); ok {
		text, _ := q["query"].(string)
		return text
	}
	text, _ := v.Query.(string)
	return text
}

type panel struct {
	ID          int `json:"id"`
	Type        string
	Title       string
	Description string
	Datasource  source
	GridPos     struct{ H, W, X, Y int }
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Targets []struct {
		RefID      string `json:"refId"`
		Expr       string
		Datasource source
	}
}

type source struct{ Type, UID string }

// fromVariable is the data source that the user chooses above the dashboard.
var fromVariable = source{Type: "prometheus", UID: "${datasource}"}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("grafana/claimq.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// leaves returns the panels that show data.
func (d dashboard) leaves() []panel {
	return slices.DeleteFunc(slices.Clone(d.Panels), func(p panel) bool { return p.Type == "row" })
}

// The dashboard is for Grafana 10 or later, and each panel has a description and a unit,
// and uses the chosen data source.
func TestDashboard_panels(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.UID != "claimq" || d.Title == "" || d.SchemaVersion < 38 || len(d.leaves()) < 30 {
		t.Errorf("uid %q, title %q, schema %d, %d panels", d.UID, d.Title, d.SchemaVersion, len(d.leaves()))
	}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	if !slices.Equal(variables, []string{"datasource", "job", "instance", "type"}) {
		t.Errorf("the variables are %v", variables)
	}
	titles := make(map[string]bool)
	for _, p := range d.leaves() {
		if p.Title == "" || titles[p.Title] || len(p.Description) < 15 || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %d: title %q (given before: %v), description %q, unit %q", p.ID, p.Title, titles[p.Title], p.Description, p.FieldConfig.Defaults.Unit)
		}
		titles[p.Title] = true
		if !slices.Contains([]string{"stat", "table", "timeseries"}, p.Type) || p.Datasource != fromVariable || len(p.Targets) == 0 {
			t.Errorf("panel %q: type %q, data source %v, %d targets", p.Title, p.Type, p.Datasource, len(p.Targets))
		}
		refs := make(map[string]bool)
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] || target.Expr == "" || target.Datasource != fromVariable {
				t.Errorf("panel %q: target %+v", p.Title, target)
			}
			refs[target.RefID] = true
		}
	}
}

// No two panels have the same id or overlap.
func TestDashboard_layout(t *testing.T) {
	t.Parallel()
	ids := make(map[int]string)
	taken := make(map[[2]int]string)
	for _, p := range readDashboard(t).Panels {
		if other, ok := ids[p.ID]; ok || p.ID < 1 {
			t.Errorf("panels %q and %q have the id %d", other, p.Title, p.ID)
		}
		ids[p.ID] = p.Title
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q lies at %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("panels %q and %q lie upon each other", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// Prometheus understands the panels' queries with any value of the variables.
func TestDashboard_promtool(t *testing.T) {
	t.Parallel()
	type rule struct{ Record, Expr string }
	type group struct {
		Name  string
		Rules []rule
	}
	var rules []rule
	values := strings.NewReplacer("$__rate_interval", "1m", "$job", "claimq", "$instance", ".*", "$type", "mail|scan")
	for _, p := range readDashboard(t).leaves() {
		for _, target := range p.Targets {
			expr := values.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q uses a variable that there is not: %s", p.Title, target.Expr)
			}
			rules = append(rules, rule{fmt.Sprintf("panel:%d:%s", p.ID, target.RefID), expr})
		}
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {{"panels", rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "panels.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
