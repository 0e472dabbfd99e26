package history

// MemoryLimit is the memory_limit of the nodes of a run: their processes may have twice that.
const MemoryLimit = 256 << 20

// Run describes how a history was made.
type Run struct {
	Nodes    int      `json:"nodes"`
	Faults   []string `json:"faults,omitempty"`
	Seconds  int      `json:"seconds"`            // of load
	Started  string   `json:"started,omitempty"`  // RFC 3339
	Revision string   `json:"revision,omitempty"` // of the binary's source
	Plant    string   `json:"plant,omitempty"`    // the bug that was planted, if any
	Drained  bool     `json:"drained,omitempty"`  // every task was expected to end
	Failed   string   `json:"failed,omitempty"`   // why the run could not be finished, if it could not
	// Shared means that the machine did other work meanwhile, so recoveries may take three times
	// as long.
	Shared bool `json:"shared,omitempty"`
	// Neighbours counts the calls of the callers' neighbours, nil in a run without them. Their
	// problems are events.
	Neighbours *Neighbours `json:"neighbours,omitempty"`
}

// Neighbours counts the calls of those that shared the cluster with the callers of a run.
type Neighbours struct {
	Readers    int   `json:"readers"`              // connections of heavy reads
	Answered   int64 `json:"answered"`             // of the reads, with the requested data
	Refused    int64 `json:"refused,omitempty"`    // with a refusal that says to ask later
	Unanswered int64 `json:"unanswered,omitempty"` // or left unanswered
	Tenants    int   `json:"tenants"`              // keys limited to some task types
	Looked     int64 `json:"looked"`               // answers to them that were searched for others' marks
	Bytes      int64 `json:"bytes"`                // of these
	// Rushes are the times when all readers asked one node for the same.
	Rushes []Rush `json:"rushes,omitempty"`
}

// Rush tells how long the same read took that was made again and again from At until To, by many
// with one key and by one with another key.
type Rush struct {
	At    int64   `json:"at"` // ns of the recorder's clock
	To    int64   `json:"to"`
	Crowd []int64 `json:"crowd,omitempty"` // ns of each read of the many
	Alone []int64 `json:"alone,omitempty"` // and of the one
}

// Sample holds the figures that a node reported about itself. A node that did not answer has only
// At and Node.
type Sample struct {
	At         int64  `json:"at"` // ns of the recorder's clock, before the request
	Node       string `json:"node"`
	PID        int    `json:"pid,omitempty"`
	Up         bool   `json:"up,omitempty"`     // it answered
	Leads      bool   `json:"leads,omitempty"`  // and says that it leads and serves
	Term       uint64 `json:"term,omitempty"`   // Raft's
	Index      uint64 `json:"index,omitempty"`  // that its state reflects
	Bytes      int64  `json:"bytes,omitempty"`  // of resident memory; the maximum, where the system reports it
	Files      int    `json:"files,omitempty"`  // open ones
	Goroutines int    `json:"gorout,omitempty"` // running ones
	Panics     int    `json:"panics,omitempty"` // while answering requests
}

// Dump describes all tasks that a node holds, read from its own state.
type Dump struct {
	Node  string `json:"node"`
	Index uint64 `json:"index"` // of the first and the last page
	Tasks int    `json:"tasks"`
	// Hash covers the answered tasks, except for estimates of the node's clock.
	// Equal states have equal hashes.
	Hash string `json:"hash"`
	// Differs says where it differs from the first dump, "" if nowhere.
	Differs string `json:"differs,omitempty"`
	// Events, TrailHash and TrailDiffers are the same for its trail.
	Events       int    `json:"events,omitempty"`
	TrailHash    string `json:"trail,omitempty"`
	TrailDiffers string `json:"trail_differs,omitempty"`
}
