package operate

import (
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// A voter that does not follow reduces how many may fail. A voter with a low disk does not.
func TestDiagnose_voters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		problems [3]string
		want     string
	}{
		{"all well", [3]string{}, "All is well: n1 leads 3 voters, of which 1 may fail"},
		{"one behind", [3]string{"", "it is 900 log entries behind", ""}, "n1 leads, 2 of 3 voters are well: if one more fails, nothing can be written"},
		{"one disk low", [3]string{"", "its disk is low: free some space", ""}, "n1 leads 3 voters, of which 1 may fail; see below what needs attention"},
		{
			"all disks low",
			[3]string{"its disk is low: free some space", "its disk is low: free some space", "its disk is low: free some space"},
			"n1 leads 3 voters, of which 1 may fail; see below what needs attention",
		},
	} {
		c := &wire.Cluster{Leader: "n1"}
		for i, problem := range test.problems {
			c.Nodes = append(c.Nodes, wire.Node{
				NodeID: "n" + string(rune('1'+i)), Suffrage: "voter", State: "follower", Healthy: problem == "", Problem: problem,
			})
		}
		if got := diagnose(c).summary; got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		c.Restore = &wire.Restore{Index: 7, Taken: 100, Bytes: 2000}
		if got := diagnose(c).points; !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "entry 7 of the log: 100 B of 2.0 KiB;") }) {
			t.Errorf("%s, while a backup is restored: %q", test.name, got)
		}
	}
}
