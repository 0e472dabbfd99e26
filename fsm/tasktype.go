package fsm

// typeRecordsMax bounds how many types have settings: a snapshot copies them
// while nobody is served.
const typeRecordsMax = 10_000

// TypeView is what can be seen of a task type.
type TypeView struct {
	Type     string
	Counts   [StatusCancelled + 1]int64 // by Status
	Settings TypeSettings
	// OldestPendingAgeMS is the age of the pending task that was submitted
	// first; 0 if none is pending.
	OldestPendingAgeMS int64
}

// typeRecord is what is saved of a task type that has settings.
type typeRecord struct {
	Name     string
	Settings TypeSettings
	// Bucket holds what the rate limit lets be claimed, in billionths of a
	// claim, as of BucketT by T. Both are 0 without a rate limit.
	Bucket  int64
	BucketT int64
}

// cloneTypes copies the records for a snapshot.
func cloneTypes(types []*typeRecord) []*typeRecord {
	all := make([]typeRecord, len(types))
	copies := make([]*typeRecord, len(types))
	for i, t := range types {
		all[i] = *t
		copies[i] = &all[i]
	}
	return copies
}
