package bound

import "github.com/claimq/claimq/api/jsonout"

// Bounds of fields, as named in docs/limits.md.
const (
	IDMax      = 1<<53 - 1 // ids and tokens; JSON numbers are exact up to here
	KeyMax     = 256       // bytes of an idempotency key
	RequestMax = 128       // bytes of a claim_request_id, of X-Request-ID
	NameMax    = 128       // bytes of a worker_id, of a task_type
	LeaseMSMin = 100
	LeaseMSMax = 86_400_000
	WaitMSMax  = 60_000
	// DelayMSMax bounds delay_ms, retry_in_ms and the fields of a backoff: 365 days.
	DelayMSMax = 31_536_000_000
	// RetentionMSMax bounds retention_ms: 100 years of 365 days.
	RetentionMSMax = 3_153_600_000_000
	ProgressBytes  = 4 << 10 // of a progress
	LabelsMax      = 16      // per task
	LabelBytes     = 64      // of a label's name, and of its value
	GroupMax       = 128     // bytes of a group
	ChangesMax     = 10_000  // tasks that one request may change
	PageDefault    = 100     // tasks of a page without limit
)

// Defaults and bounds of a backoff.
const (
	BackoffMaxMS  = 86_400_000        // of max_ms, or initial_ms if that is larger
	BackoffFactor = 2 * jsonout.Micro // the default
	FactorMax     = 1_000 * jsonout.Micro
)
