package fsm

// Why says why a task is not running, at one index.
type Why struct {
	Status  Status
	Reasons []WhyReason
	// Ahead is how many claimable tasks of its type a claim by priority takes
	// before it.
	Ahead int64
}

// WhyCode is one reason. The values are the contract's.
type WhyCode string

// The reasons that the state knows. The API adds no_worker.
const (
	WhyTypePaused   WhyCode = "type_paused"
	WhyLimitReached WhyCode = "limit_reached" // Holders
	WhyRateLimited  WhyCode = "rate_limited"  // At
	WhyScheduled    WhyCode = "scheduled"     // At
	WhyBlocked      WhyCode = "blocked"
	WhyGroupBehind  WhyCode = "group_behind" // TaskID
	WhyQueued       WhyCode = "queued"       // Why.Ahead
)

// WhyReason is one reason with its details.
type WhyReason struct {
	Code    WhyCode
	At      int64    // by T
	TaskID  uint64   // the head of its group
	Holders []Holder // at most whyHoldersMax
}

// whyHoldersMax bounds WhyReason.Holders.
const whyHoldersMax = 100

// Holder is one claim of a type.
type Holder struct {
	TaskID   uint64
	WorkerID string
}

// Why says why the task is not running, ok false if there is none. A task that
// is claimed or has ended has no reasons.
func (m *Machine) Why(id uint64, now Stamp) (w Why, ok bool) { return Why{}, false }
