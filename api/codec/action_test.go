package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// TestDecodeAction reads every field.
func TestDecodeAction(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Action{
		`{"action":"cancel","all":true,"add_attempts":null,"dry_run":null,"expect":null}`: {Action: command.ActionCancel, All: true},
		`{"action":"retry","add_attempts":3,"dry_run":true,"expect":0,"filter":{"status":"failed","task_type":"a","worker_id":"w","parent_id":7,
		"labels":{"b":"2","a":""},"created_after":"2026-03-01T12:00:00.0005Z","created_before":"2026-03-01T13:00:00.0005+01:00","error_group":"00000000000000ff"}}`: {
			Action: command.ActionRetry, AddAttempts: 3, Adds: true, DryRun: true, Expects: true,
			Filter: fsm.Filter{
				Status: fsm.StatusFailed, Type: "a", WorkerID: "w", ParentID: 7, Labels: []fsm.Label{{Name: "a"}, {Name: "b", Value: "2"}},
				CreatedAfter: start, CreatedBefore: start + 1,
			},
			ErrorGroup: 255,
		},
		`{"action":"delete","all":true,"filter":{"status":null,"task_type":null,"worker_id":null,"parent_id":null,"labels":null,"created_after":null,"created_before":null,"error_group":null}}`: {
			Action: command.ActionDelete, All: true,
		},
	} {
		var limits Limits
		limits.SetDefaults()
		got, bad := DecodeAction([]byte(body), &limits)
		if bad != nil {
			t.Fatalf("%s: %s", body, bad.Text)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Action{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}
