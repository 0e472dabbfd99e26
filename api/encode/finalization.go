package encode

import "github.com/claimq/claimq/fsm"

// FinalizationMessage returns the contract's message for the outcome of a claim.
func FinalizationMessage(o fsm.FinalizationOutcome) string {
	switch o {
	case fsm.FinalizationClaimed:
		return "Successfully claimed for finalization"
	case fsm.FinalizationExtended:
		return "Claim extended"
	case fsm.FinalizationAlreadyClaimed:
		return "Task already claimed for finalization"
	case fsm.FinalizationAlreadyDone:
		return "Task already complete"
	case fsm.FinalizationNotReady:
		return "Task has no completed or failed steps"
	}
	return "Task not found"
}
