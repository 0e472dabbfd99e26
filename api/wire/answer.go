package wire

import "time"

// Answer is every successful answer of the task calls; each call fills the
// fields that the contract gives it.
type Answer struct {
	Success  bool   `json:"success"`
	Message  string `json:"message,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
	Task     *Task  `json:"task,omitempty"`
	Tasks    []Task `json:"tasks,omitempty"`

	// Submit of one.
	Created     bool  `json:"created,omitempty"`
	SameRequest *bool `json:"same_request,omitempty"` // only false is sent
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
	// List. "" or null: there is no more.
	NextCursor string `json:"next_cursor,omitempty"`
}

// Claimed is what a complete with a claim took: Tasks if the claim had a limit,
// else Task, nil if there was none.
type Claimed struct {
	Task  *Task  `json:"task,omitempty"`
	Tasks []Task `json:"tasks,omitempty"`
}

// SubmitResult is one element of the answer to a submit of many, or of a
// complete's follow-up tasks: ID and Created, or Error, Code, Message and Field.
type SubmitResult struct {
	ID          uint64 `json:"id,omitempty"`
	Created     bool   `json:"created"`
	SameRequest *bool  `json:"same_request,omitempty"`
	Error       string `json:"error,omitempty"`
	Code        Code   `json:"code,omitempty"`
	Message     string `json:"message,omitempty"`
	Field       string `json:"field,omitempty"` // as tasks[3].priority
}

// Refusal is the body of every failed call. Details beside these fields
// (worker_id, status, field, ...) differ by code.
type Refusal struct {
	Success   bool   `json:"success"` // false
	Error     string `json:"error"`   // what happened
	Code      Code   `json:"code"`
	Message   string `json:"message"` // what to do
	RequestID string `json:"request_id"`
	// FailedOp is the place of the op for which an atomic batch was refused.
	FailedOp *int `json:"failed_op,omitempty"`
}

// Stats is the answer of GET /api/stats, exact at one log index.
type Stats struct {
	Success            bool                        `json:"success"`
	Index              uint64                      `json:"index"`
	Counts             map[string]int64            `json:"counts"` // by status
	Types              map[string]map[string]int64 `json:"types"`  // by type, by status
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
	// Restore is the restore that is under way, nil if none is.
	Restore *Restore `json:"restore,omitempty"`
}

// Restore is how far a restore is.
type Restore struct {
	Index uint64 `json:"index"` // of the entry of the log that began it
	Taken uint64 `json:"taken"` // bytes of the state that the node has
	Bytes uint64 `json:"bytes"` // of all of it
}

// Node is one node in Cluster.
type Node struct {
	NodeID        string `json:"node_id"`
	UUID          string `json:"uuid"`
	PeerAddr      string `json:"peer_addr"`
	HTTPAddr      string `json:"http_addr"`
	Suffrage      string `json:"suffrage"`
	State         string `json:"state"`
	LastContactMS int64  `json:"last_contact_ms"` // -1 = never
	ClockAheadMS  *int64 `json:"clock_ahead_ms"`  // nil = not known
	AppliedIndex  uint64 `json:"applied_index"`
	Version       string `json:"version"`
	Healthy       bool   `json:"healthy"`
	Problem       string `json:"problem"`
	Room          *Room  `json:"room"`       // nil = not known
	TimeZones     *Zones `json:"time_zones"` // nil = not known
}

// Zones are a release of the time zones.
type Zones struct {
	Version string `json:"version"` // as 2026f
	Sum     string `json:"sum"`     // the beginning of the hash of all of them
}

// Room is what a node's state takes, and what is free on its disk, each with its bound.
type Room struct {
	StateBytes       int64 `json:"state_bytes"`
	StateLimitBytes  int64 `json:"state_limit_bytes"`
	DiskFreeBytes    int64 `json:"disk_free_bytes"`
	DiskFreeMinBytes int64 `json:"disk_free_min_bytes"`
}

// Member is the answer of POST /api/cluster/join, /promote and /demote: the
// member as it is now.
type Member struct {
	Success bool `json:"success"`
	Node    Node `json:"node"`
}

// JoinToken is what the cluster knows of a token that lets nodes join: not the token.
type JoinToken struct {
	ID        string    `json:"id"`   // the first 12 digits of its SHA-256
	Uses      int       `json:"uses"` // nodes that may come by it
	Used      int       `json:"used"` // nodes that have
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// JoinTokenMade is the answer of POST /api/cluster/tokens.
type JoinTokenMade struct {
	Success bool      `json:"success"`
	Token   JoinToken `json:"token"`
}

// JoinTokens is the answer of GET /api/cluster/tokens: those that have not expired,
// the oldest first.
type JoinTokens struct {
	Success bool        `json:"success"`
	Tokens  []JoinToken `json:"tokens"`
}

// Keys is the answer of GET /api/keys: a page of the keys of one node, by name.
type Keys struct {
	Success bool      `json:"success"`
	NodeID  string    `json:"node_id"`
	Since   time.Time `json:"since"` // the node knows of no use of a key before
	Keys    []Key     `json:"keys"`
	Next    *string   `json:"next"` // what after is for the next page; nil: there is none
}

// Key is an API key as operators see it: not the key, nor its hash.
type Key struct {
	Name               string     `json:"name"`
	Roles              []string   `json:"roles"`
	TaskTypes          []string   `json:"task_types"`            // none: all
	RateLimitPerMinute int64      `json:"rate_limit_per_minute"` // 0: no bound
	ExpiresAt          *time.Time `json:"expires_at"`            // nil: never
	Addresses          []string   `json:"addresses"`             // none: all
	LastUsedAt         *time.Time `json:"last_used_at"`          // nil: not since Keys.Since
	LastUsedFrom       *string    `json:"last_used_from"`        // nil: not known
}

// Transferred is the answer of POST /api/cluster/transfer: who leads now.
type Transferred struct {
	Success bool   `json:"success"`
	Leader  string `json:"leader"`
}

// ClusterHash is the answer of GET /api/cluster/hash.
type ClusterHash struct {
	Success bool       `json:"success"`
	Index   uint64     `json:"index"` // of the log, that the hashes are of
	Agree   bool       `json:"agree"` // all that answered have the same hash
	Nodes   []NodeHash `json:"nodes"`
}

// NodeHash is one node in ClusterHash; Hash is "" if it did not answer in time.
type NodeHash struct {
	NodeID string `json:"node_id"`
	Hash   string `json:"hash"`
}
