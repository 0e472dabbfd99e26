package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// scaledObject has the fields of KEDA's object that the example uses.
type scaledObject struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		ScaleTargetRef  struct{ Name string } `yaml:"scaleTargetRef"`
		MinReplicaCount int                   `yaml:"minReplicaCount"`
		MaxReplicaCount int                   `yaml:"maxReplicaCount"`
		CooldownPeriod  int                   `yaml:"cooldownPeriod"`
		Fallback        struct {
			FailureThreshold int `yaml:"failureThreshold"`
			Replicas         int
		}
		Triggers []struct {
			Type     string
			Metadata struct {
				ServerAddress    string `yaml:"serverAddress"`
				Query            string
				Threshold        string
				IgnoreNullValues string `yaml:"ignoreNullValues"`
			}
		}
	}
}

func readScaledObject(t *testing.T) scaledObject {
	t.Helper()
	var o scaledObject
	readYAML(t, "keda/scaledobject.yaml", &o)
	if o.APIVersion != "keda.sh/v1alpha1" || o.Kind != "ScaledObject" || len(o.Spec.Triggers) != 1 {
		t.Fatalf("no ScaledObject with one trigger: %+v", o)
	}
	return o
}

// The example's query returns the backlog of its type at the leader, 0 for a type without
// tasks, and nothing without a leader.
func TestKEDA_query(t *testing.T) {
	t.Parallel()
	tests := "tests:\n"
	add := func(name, leader, other, series, want string) {
		tests += fmt.Sprintf(`
  - name: %s
    interval: 1m
    input_series:
      - {series: 'claimq_raft_leader{job="claimq", instance="n1"}', values: '%s'}
      - {series: 'claimq_raft_leader{job="claimq", instance="n2"}', values: '%s'}
%s    promql_expr_test:
      - expr: %q
        eval_time: 0m
        exp_samples: %s
`, name, leader, other, series, readScaledObject(t).Spec.Triggers[0].Metadata.Query, want)
	}
	tasks := ""
	for _, s := range []string{`n1", status="pending`, `n1", status="claimed`, `n1", status="failed`, `n2", status="pending`, `n2", status="claimed`} {
		tasks += fmt.Sprintf("      - {series: 'claimq_tasks_by_type{job=\"claimq\", task_type=\"mail\", instance=\"%s\"}', values: '7'}\n", s)
	}
	add("backlog", "1", "0", tasks, "[{labels: '{}', value: 14}]")
	add("no tasks", "1", "0", "", "[{labels: '{}', value: 0}]")
	add("no leader", "0", "0", tasks, "[]")
	add("after a transfer", "1", "1", tasks, "[{labels: '{}', value: 14}]")
	path := filepath.Join(t.TempDir(), "keda_test.yml")
	if err := os.WriteFile(path, []byte(tests), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", path)
}
