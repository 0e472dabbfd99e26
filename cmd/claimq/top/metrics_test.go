package top

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMetrics(t *testing.T) {
	t.Parallel()
	text := `# HELP claimq_tasks Tasks that this node holds, by status.
# TYPE claimq_tasks gauge
claimq_tasks{status="pending"} 12
claimq_tasks{status="claimed"} 1e+06
claimq_tasks{status="failed"} NaN
claimq_build_info{go_version="go1.26",node_id="n1",version="v1}\"2"} 1
claimq_raft_leader 1
claimq_tasks_submitted_total 5
claimq_claims_total 4 1767355200000
claimq_tasks_completed_total +Inf
claimq_tasks_failed_total -2
claimq_state_bytes 4096
claimq_disk_free_bytes 9.9e+300
claimq_http_request_duration_seconds_bucket{call="submit_tasks",code="ok",le="+Inf"} 7
process_start_time_seconds 1.76735519999e+09
claimq_oldest_pending_age_seconds 1.5
`
	want := Metrics{
		At: noon, NodeID: "n1", Leads: true, Started: 1.76735519999e+09, Tasks: map[string]int64{"pending": 12, "claimed": 1_000_000},
		Counters: Counters{Submitted: 5, Claimed: 4, Failed: -2}, OldestPendingMS: 1500, StateBytes: 4096,
		StateLimitBytes: -1, DiskFreeBytes: -1, DiskSizeBytes: -1, ProcessMemoryBytes: -1,
	}
	if diff := cmp.Diff(want, parseMetrics(text, noon)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := parseMetrics(text+"claimq_tasks}{ 5\n", noon); got.NodeID != "" || got.Tasks != nil {
		t.Errorf("of what is no text of metrics: %+v", got)
	}
}

func FuzzParseMetrics(f *testing.F) {
	f.Add("claimq_tasks{status=\"a\"} 1\n{} 2\n}{ 3\na{b=\" 4")
	f.Fuzz(func(t *testing.T, text string) {
		for status, n := range parseMetrics(text, noon).Tasks {
			if n > countMax || n < -countMax {
				t.Errorf("%q: %d", status, n)
			}
		}
	})
}
