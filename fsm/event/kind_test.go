package event

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKind_NamesAreTheContracts(t *testing.T) {
	t.Parallel()
	contract := strings.Fields("submitted scheduled claimed released failed requeued lease_expired completed retried " +
		"cancel_requested cancelled deleted expired finalization_claimed finalized type_changed schedule_set schedule_deleted node_set node_removed level_raised trail_changed " +
		"member_added member_removed member_promoted member_demoted leadership_transferred snapshot_taken backup_saved restored keys_reloaded " +
		"join_token_made join_token_used join_token_revoked join_token_expired backup_begun backup_broken_off restore_begun restore_broken_off defaults_changed share_changed signalled steps_added")
	if Last >= 64 {
		t.Errorf("event %d is in no set of kinds", Last)
	}
	var names []string
	for k := range Kind(255) {
		if k.String() == "" {
			continue
		}
		if got, ok := ParseKind(k.String()); !ok || got != k {
			t.Errorf("%q is read as %d, %v", k, got, ok)
		}
		names = append(names, k.String())
	}
	slices.Sort(contract)
	slices.Sort(names)
	if diff := cmp.Diff(contract, names); diff != "" {
		t.Errorf("(-contract +ours):\n%s", diff)
	}
	if _, ok := ParseKind(""); ok {
		t.Error("nothing is a kind")
	}
}
