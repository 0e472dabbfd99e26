package memory

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/claimq/claimq/api/sqs"
)

// Every call of the API's table has a row.
func TestRows(t *testing.T) {
	table, err := os.ReadFile("../../api/calls.go")
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, call := range regexp.MustCompile(`\{name: "([a-z_]+)", pattern`).FindAllSubmatch(table, -1) {
		calls = append(calls, string(call[1]))
	}
	for op := range sqs.Ops {
		calls = append(calls, sqsRow(op.String(), "", 0, nil).call)
	}
	slices.Sort(calls)
	if names := Names(); len(calls) < 60 || !slices.Equal(calls, names) {
		t.Errorf("the calls of the API are %v, those with rows %v", calls, names)
	}
}
