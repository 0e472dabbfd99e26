package refuse

import (
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// finalize words the refusal of a finalize. The conflicting party is the one that has the claim.
func finalize(f *Refusal, res *fsm.Result) {
	if res.Parent != nil {
		f.holder = res.Parent.Holder
	}
	switch f.Code {
	case wire.CodeTaskNotClaimable:
		f.Text, f.Advice = "Task has no steps", "Settle it as any task: only a task with steps is finalized"
	case wire.CodeTaskAlreadyClaimed:
		f.Text, f.Advice = encode.FinalizationMessage(fsm.FinalizationAlreadyClaimed), "Leave it to the processor in worker_id, or wait until its claim has ended"
	}
}
