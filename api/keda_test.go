package api

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The triggers of deploy/keda find a number in the answer of GET /api/types/{type}, even for a type without tasks, by
// KEDA's rules: valueLocation is a dotted path of keys, the answer is 200, and the formula names each trigger.
func TestKEDA_metricsAPI(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/keda/metrics-api.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Kind string
		Spec struct {
			Advanced struct {
				ScalingModifiers struct{ Formula, Target string } `yaml:"scalingModifiers"`
			}
			Triggers []struct {
				Type, Name string
				Metadata   map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &o); err != nil { // the first of the two documents
		t.Fatal(err)
	}
	server, _ := setup(t)
	if o.Kind != "ScaledObject" || len(o.Spec.Triggers) != 2 {
		t.Fatalf("no ScaledObject with two triggers: %+v", o)
	}
	var names []string
	for _, trigger := range o.Spec.Triggers {
		names = append(names, trigger.Name)
		m := trigger.Metadata
		if trigger.Type != "metrics-api" || !strings.HasSuffix(m["url"], "/api/types/mail") || m["keyParamName"] != "X-API-Key" || m["method"] != "header" {
			t.Errorf("%+v", trigger)
		}
		got := server.call(t, "GET "+strings.TrimPrefix(m["url"], "http://claimq:7400"), "")
		var value any
		if err := json.Unmarshal([]byte(got.body), &value); err != nil || got.status != 200 {
			t.Fatalf("%d %s: %v", got.status, got.body, err)
		}
		for key := range strings.SplitSeq(m["valueLocation"], ".") {
			object, _ := value.(map[string]any)
			value = object[key]
		}
		if _, ok := value.(float64); !ok {
			t.Errorf("%s is no number in %s", m["valueLocation"], got.body)
		}
	}
	if formula := strings.Join(names, " + "); o.Spec.Advanced.ScalingModifiers.Formula != formula {
		t.Errorf("the formula is %q, want %q", o.Spec.Advanced.ScalingModifiers.Formula, formula)
	}
}
