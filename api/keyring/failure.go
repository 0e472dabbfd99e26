package keyring

// Failure is the reason why a caller was refused.
type Failure uint8

// The failures, in the order of FailureNames.
const (
	FailMissing Failure = iota
	FailMalformed
	FailUnknown
	FailDiffer
	FailExpired
	FailRole
	FailType
	failAddress
	FailOrigin
	FailIssuer
	failAudience
	failSignature
	failEarly
	failLifetime
	FailUnchecked
	FailCount
)

// FailureNames are the labels of the failures in metrics.
var FailureNames = [FailCount]string{
	"missing", "malformed", "unknown", "differ", "expired", "role", "task_type", "address", "origin",
	"issuer", "audience", "signature", "early", "lifetime", "unchecked",
}
