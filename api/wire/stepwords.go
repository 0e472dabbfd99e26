package wire

// The words for what the fields of steps may be.
const (
	FinalizeAuto  = "auto"
	FinalizeClaim = "claim"
	OnFailureFail = "fail"
	OnFailureGoOn = "continue"
)
