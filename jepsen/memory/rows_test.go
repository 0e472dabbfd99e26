package memory

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// Every call of the API's table has a row.
func TestRows(t *testing.T) {
	table, err := os.ReadFile("../../api/calls.go")
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, call := range regexp.MustCompile(`\{Name: "([a-z_]+)"`).FindAllSubmatch(table, -1) {
		calls = append(calls, string(call[1]))
	}
	slices.Sort(calls)
	if names := Names(); len(calls) < 60 || !slices.Equal(calls, names) {
		t.Errorf("the calls of the API are %v, those with rows %v", calls, names)
	}
}
