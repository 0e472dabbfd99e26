package operate

import (
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// The latest use counts, whichever node knows it.
func TestMergeKeys(t *testing.T) {
	t.Parallel()
	now := time.Now()
	earlier, here, there := now.Add(-time.Hour), "192.0.2.1", "192.0.2.2"
	list := mergeKeys([]keyNode{
		{NodeID: "n1", keys: []wire.Key{{Name: "b", LastUsedAt: &earlier, LastUsedFrom: &here}}},
		{NodeID: "n2", Error: "it is down"},
		{NodeID: "n3", keys: []wire.Key{{Name: "a"}, {Name: "b", LastUsedAt: &now, LastUsedFrom: &there}}},
		{NodeID: "n4", keys: []wire.Key{{Name: "a", RateLimitPerMinute: 1}, {Name: "b"}}},
	})
	a, b := list.Keys[0], list.Keys[1]
	if a.Name != "a" || !a.Differs || a.LastUsedAt != nil || strings.Join(a.Nodes, " ") != "n3 n4" {
		t.Errorf("%+v", a)
	}
	if b.Name != "b" || b.Differs || b.LastUsedAt != &now || b.LastUsedFrom != &there || strings.Join(b.Nodes, " ") != "n1 n3 n4" {
		t.Errorf("%+v", b)
	}
}
