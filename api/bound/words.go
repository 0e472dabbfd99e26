package bound

// Descriptions of valid values, for refusals.
const (
	TaskTypeAllowed = "a string of 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or .."
	StepNameAllowed = TaskTypeAllowed
	StatusAllowed   = "pending, scheduled, blocked, claimed, running, completed, failed or cancelled"
	CreatedAllowed  = "a time in RFC 3339, as 2006-01-02T15:04:05.000Z"
)
