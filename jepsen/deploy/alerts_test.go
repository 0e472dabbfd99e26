package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// alert is one rule of prometheus/alerts.yml.
type alert struct {
	Alert       string
	Expr        string
	For         *string
	Labels      map[string]string
	Annotations map[string]string
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	readYAML(t, "prometheus/alerts.yml", &file)
	var alerts []alert
	for _, g := range file.Groups {
		alerts = append(alerts, g.Rules...)
	}
	return alerts
}

// readYAML reads a file that has no fields but those of into.
func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// promtool runs Prometheus's own checker.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Fatal("promtool is missing: .ci/tools installs it")
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Prometheus accepts the files, and the alerts fire as alerts_test.yml says.
func TestAlerts_promtool(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "config", filepath.Join("prometheus", "prometheus.yml")) // includes the rules
	promtool(t, "test", "rules", filepath.Join("prometheus", "alerts_test.yml"))
}

// Each alert states its severity, the problem and what to do, and has a duration and a row
// among the runbooks.
func TestAlerts_say(t *testing.T) {
	t.Parallel()
	runbooks, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, a := range readAlerts(t) {
		if seen[a.Alert] {
			t.Errorf("there are two alerts %s", a.Alert)
		}
		seen[a.Alert] = true
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q", a.Alert, s)
		}
		if a.For == nil {
			t.Errorf("%s does not say for how long", a.Alert)
		}
		if len(a.Annotations["summary"]) < 20 || len(a.Annotations["description"]) < 100 || len(a.Annotations) != 3 {
			t.Errorf("%s has the annotations %q", a.Alert, a.Annotations)
		}
		anchor := strings.ToLower(a.Alert)
		if got, want := a.Annotations["runbook_url"], "https://github.com/claimq/claimq/blob/main/docs/operations.md#"+anchor; got != want {
			t.Errorf("%s has the runbook %s, want %s", a.Alert, got, want)
		}
		if strings.Count(string(runbooks), `<a id="`+anchor+`"></a>`+"`"+a.Alert+"` |") != 1 {
			t.Errorf("docs/operations.md has no row of %s", a.Alert)
		}
	}
}

// Each alert has a test in which it fires, and before that does not.
func TestAlerts_tested(t *testing.T) {
	t.Parallel()
	var file struct {
		RuleFiles          []string `yaml:"rule_files"`
		EvaluationInterval string   `yaml:"evaluation_interval"`
		Tests              []struct {
			Name        string
			Interval    string
			InputSeries []struct{ Series, Values string } `yaml:"input_series"`
			Looks       []struct {
				Expr string
				At   string `yaml:"eval_time"`
				Want []struct {
					Labels string
					Value  float64
				} `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	readYAML(t, "prometheus/alerts_test.yml", &file)
	fires := make(map[string]bool)
	well := make(map[string]bool) // metrics of the test in which nothing fires
	for _, test := range file.Tests {
		before := make(map[string]bool) // alerts that were seen not to fire
		for _, look := range test.Looks {
			if look.Expr != `count by (alertname) (ALERTS{alertstate="firing"})` {
				t.Errorf("%q at %s asks %s", test.Name, look.At, look.Expr)
			}
			now := make(map[string]bool)
			for _, want := range look.Want {
				name := strings.TrimSuffix(strings.TrimPrefix(want.Labels, `{alertname="`), `"}`)
				now[name] = true
				fires[name] = fires[name] || before[name]
			}
			for _, a := range readAlerts(t) {
				before[a.Alert] = before[a.Alert] || !now[a.Alert]
			}
		}
		for _, s := range test.InputSeries {
			if name, _, _ := strings.Cut(s.Series, "{"); test.Name == "a busy cluster that is well" {
				well[name] = true
			}
		}
	}
	for _, a := range readAlerts(t) {
		if !fires[a.Alert] {
			t.Errorf("%s is never shown not to fire and then to fire", a.Alert)
		}
		for _, name := range seriesOf(a.Expr) {
			if !well[name] {
				t.Errorf("%s asks for %s, which the cluster that is well does not have", a.Alert, name)
			}
		}
	}
}
