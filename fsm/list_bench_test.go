package fsm

import (
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// A page far down a list of 1,000,000 tasks costs what its first one does.
func BenchmarkList(b *testing.B) {
	m := newMillion(b, 1, 1)
	for name, q := range map[string]ListQuery{
		"page 1":                   {Limit: pageTasksMax},
		"page 1000":                {Limit: pageTasksMax, From: 999_000},
		"newest page":              {Limit: pageTasksMax, Descending: true},
		"10,000 that do not match": {Limit: pageTasksMax, From: 500_000, Filter: record.Filter{Labels: []record.Label{{Name: "none", Value: "such"}}}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.List(q)
			}
		})
	}
}
