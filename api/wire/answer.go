package wire

import "time"

// Answer is any successful answer of the task calls; each call sets the fields that the contract gives it.
type Answer struct {
	Success  bool   `json:"success"`
	Message  string `json:"message,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
	Task     *Task  `json:"task,omitempty"`
	Tasks    []Task `json:"tasks,omitempty"`

	// Submit of one.
	Created     bool  `json:"created,omitempty"`
	Replaced    bool  `json:"replaced,omitempty"`
	SameRequest *bool `json:"same_request,omitempty"` // sent only if false
	SameSignal  *bool `json:"same_signal,omitempty"`  // of a repeated signal; sent only if false
	// Submit of many.
	Results []SubmitResult `json:"results,omitempty"`
	Failed  int            `json:"failed,omitempty"`
	// Complete with follow-up tasks, and with the next claim.
	Submitted []SubmitResult `json:"submitted,omitempty"`
	Claimed   *Claimed       `json:"claimed,omitempty"`
	// Extend.
	LeaseRemainingMS int64 `json:"lease_remaining_ms,omitempty"`
	CancelRequested  bool  `json:"cancel_requested,omitempty"`
	// Delete.
	Deleted int `json:"deleted,omitempty"`
	// List. "" or null: this is the last page.
	NextCursor string `json:"next_cursor,omitempty"`
}

// Claimed holds the tasks that a complete with a claim took: Tasks if the claim had a limit, otherwise Task, nil if
// nothing was claimed.
type Claimed struct {
	Task  *Task  `json:"task,omitempty"`
	Tasks []Task `json:"tasks,omitempty"`
}

// SubmitResult is one element of the answer to a submit of many, or of a
// complete's follow-up tasks: ID and Created, or Error, Code, Message and Field.
type SubmitResult struct {
	ID          uint64 `json:"id,omitempty"`
	Created     bool   `json:"created"`
	Replaced    bool   `json:"replaced,omitempty"`
	SameRequest *bool  `json:"same_request,omitempty"`
	Error       string `json:"error,omitempty"`
	Code        Code   `json:"code,omitempty"`
	Message     string `json:"message,omitempty"`
	Field       string `json:"field,omitempty"` // such as tasks[3].priority
}

// Refusal is the body of every failed call. Further details (worker_id, status, field, ...) depend on the code.
type Refusal struct {
	Success   bool   `json:"success"` // false
	Error     string `json:"error"`   // what happened
	Code      Code   `json:"code"`
	Message   string `json:"message"` // what to do
	RequestID string `json:"request_id"`
	// FailedOp is the index of the op for which an atomic batch was refused.
	FailedOp *int `json:"failed_op,omitempty"`
}

// Stats is the answer of GET /api/stats, exact at one log index.
type Stats struct {
	Success            bool                        `json:"success"`
	Index              uint64                      `json:"index"`
	Counts             map[string]int64            `json:"counts"` // by status
	Types              map[string]map[string]int64 `json:"types"`  // by type and status
	TypesLeftOut       int                         `json:"types_left_out"`
	Bytes              int64                       `json:"bytes"`
	OldestPendingAgeMS int64                       `json:"oldest_pending_age_ms"`
}

// Cluster is the answer of GET /api/cluster.
type Cluster struct {
	Success      bool   `json:"success"`
	Leader       string `json:"leader"` // node id, "" = none known
	Term         uint64 `json:"term"`
	FeatureLevel uint32 `json:"feature_level"`
	Nodes        []Node `json:"nodes"`
	// Restore is the restore under way, or nil.
	Restore *Restore `json:"restore,omitempty"`
}

// Restore is the progress of a restore.
type Restore struct {
	Index uint64 `json:"index"` // of the log entry that began it
	Taken uint64 `json:"taken"` // bytes of the state that the node has
	Bytes uint64 `json:"bytes"` // total bytes
}

// Node is one node in Cluster.
type Node struct {
	NodeID        string `json:"node_id"`
	UUID          string `json:"uuid"`
	PeerAddr      string `json:"peer_addr"`
	HTTPAddr      string `json:"http_addr"`
	Suffrage      string `json:"suffrage"`        // "voter" or "nonvoter"
	State         string `json:"state"`           // "leader", "follower", "candidate" or "unknown"
	LastContactMS int64  `json:"last_contact_ms"` // -1 = never
	ClockAheadMS  *int64 `json:"clock_ahead_ms"`  // nil = not known
	AppliedIndex  uint64 `json:"applied_index"`
	Version       string `json:"version"`
	Healthy       bool   `json:"healthy"`
	Problem       string `json:"problem"`    // "" = none; a healthy node may have one, too
	Room          *Room  `json:"room"`       // nil = not known
	TimeZones     *Zones `json:"time_zones"` // nil = not known
}

// Zones identify a release of the time zones.
type Zones struct {
	Version string `json:"version"` // such as 2026f
	Sum     string `json:"sum"`     // the beginning of a hash of all of them
}

// Room is the size of a node's state and the free space on its disk, each with its bound.
type Room struct {
	StateBytes       int64 `json:"state_bytes"`
	StateLimitBytes  int64 `json:"state_limit_bytes"`
	DiskFreeBytes    int64 `json:"disk_free_bytes"`
	DiskFreeMinBytes int64 `json:"disk_free_min_bytes"`
}

// Member is the answer of POST /api/cluster/join, /promote and /demote: the member after the change.
type Member struct {
	Success bool `json:"success"`
	Node    Node `json:"node"`
}

// JoinToken is the cluster's record of a token that lets nodes join, without the token itself.
type JoinToken struct {
	ID        string    `json:"id"`   // the first 12 digits of its SHA-256
	Uses      int       `json:"uses"` // how many nodes may join with it
	Used      int       `json:"used"` // how many nodes have joined
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// JoinTokenMade is the answer of POST /api/cluster/tokens.
type JoinTokenMade struct {
	Success bool      `json:"success"`
	Token   JoinToken `json:"token"`
}

// JoinTokens is the answer of GET /api/cluster/tokens: tokens that have not expired, oldest first.
type JoinTokens struct {
	Success bool        `json:"success"`
	Tokens  []JoinToken `json:"tokens"`
}

// Keys is the answer of GET /api/keys: a page of the keys of one node, by name.
type Keys struct {
	Success bool      `json:"success"`
	NodeID  string    `json:"node_id"`
	Since   time.Time `json:"since"` // uses before this time are unknown
	Keys    []Key     `json:"keys"`
	Next    *string   `json:"next"` // for after of the next page; nil: this is the last page
}

// Key is an API key as operators see it, without the key itself or its hash.
type Key struct {
	Name               string     `json:"name"`
	Roles              []string   `json:"roles"`
	TaskTypes          []string   `json:"task_types"`            // empty: all
	RateLimitPerMinute int64      `json:"rate_limit_per_minute"` // 0: no bound
	ExpiresAt          *time.Time `json:"expires_at"`            // nil: never
	Addresses          []string   `json:"addresses"`             // empty: all
	LastUsedAt         *time.Time `json:"last_used_at"`          // nil: not since Keys.Since
	LastUsedFrom       *string    `json:"last_used_from"`        // nil: not known
}

// Transferred is the answer of POST /api/cluster/transfer: the new leader.
type Transferred struct {
	Success bool   `json:"success"`
	Leader  string `json:"leader"`
}

// ClusterHash is the answer of GET /api/cluster/hash.
type ClusterHash struct {
	Success bool       `json:"success"`
	Index   uint64     `json:"index"` // log index of the hashes
	Agree   bool       `json:"agree"` // all nodes that answered have the same hash
	Nodes   []NodeHash `json:"nodes"`
}

// NodeHash is one node in ClusterHash; Hash is "" if it did not answer in time.
type NodeHash struct {
	NodeID string `json:"node_id"`
	Hash   string `json:"hash"`
}
