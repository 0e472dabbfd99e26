package repeat

import "testing"

// safe is a row of the table of Op.Safe and Op.BatchSafe.
type safe struct {
	op                      Op
	marked, unmarked, batch bool
}

func safeRows() []safe {
	return []safe{
		{OpSubmit, true, false, true},
		{OpClaim, true, false, true},
		{OpComplete, true, false, true},
		{OpFail, true, false, true},
		{OpExtend, true, false, true},
		{OpRelease, true, false, true},
		{OpCancel, true, true, true},
		{OpPatch, true, true, true},
		{OpSetType, true, true, true},
		{OpDelete, true, true, false},
		{OpFinalizationClaim, true, true, true},
		{OpFinalizationExtend, true, true, true},
		{OpFinalizationRelease, true, true, true},
		{OpFinalize, true, true, true},
		{OpRetry, false, false, false},
		{"burn", false, false, false},
	}
}

// Calls whose repeats the server recognizes, and those that set a state, may be repeated; a
// retry may not.
func TestOp_Safe(t *testing.T) {
	t.Parallel()
	for _, c := range safeRows() {
		if c.op.Safe(true) != c.marked || c.op.Safe(false) != c.unmarked || c.op.BatchSafe(true) != c.batch {
			t.Errorf("%s: marked %v, unmarked %v, in a batch %v", c.op, c.op.Safe(true), c.op.Safe(false), c.op.BatchSafe(true))
		}
	}
}
