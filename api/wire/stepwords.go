package wire

// Values of the fields of steps.
const (
	FinalizeAuto  = "auto"
	FinalizeClaim = "claim"
	OnFailureFail = "fail"
	OnFailureGoOn = "continue"
)
