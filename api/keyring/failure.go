package keyring

// Failure is why a request was refused for who made it.
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

// FailureNames are the labels of the failures in metrics. It is never changed.
var FailureNames = [FailCount]string{
	"missing", "malformed", "unknown", "differ", "expired", "role", "task_type", "address", "origin",
	"issuer", "audience", "signature", "early", "lifetime", "unchecked",
}
