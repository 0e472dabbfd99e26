package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Batch is the body of POST /api/batch: 1 to 1,000 ops in one entry of the log.
type Batch struct {
	Atomic bool   `json:"atomic,omitempty"` // all or none
	Return string `json:"return,omitempty"` // ReturnAll, the default, or ReturnMinimal
	// ClaimRequestID is the claim_request_id of all claims among the ops that do not have one. The
	// claim_request_place of each is its op's index.
	ClaimRequestID string `json:"claim_request_id,omitempty"`
	Ops            []Op   `json:"ops"`
}

// Values of Batch.Return: whether the answer shows the whole tasks that its ops are about, or only their ids and
// statuses. Claimed tasks are always whole.
const (
	ReturnAll     = "all"
	ReturnMinimal = "minimal"
)

// Op is one op of a batch.
type Op struct {
	// Op is submit, claim, complete, fail, extend, release, retry, cancel or delete.
	Op string
	// ID is the task that the op is about; 0 for submit and claim.
	ID uint64
	// Fields is the body of the op's own call, such as NewTask, Claim, Settle or Retry: anything that is encoded as
	// an object. nil = none.
	Fields any
}

// MarshalJSON encodes the op and its fields as one object.
func (o Op) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(struct {
		Op string `json:"op"`
		ID uint64 `json:"id,omitempty"`
	}{o.Op, o.ID})
	if err != nil || o.Fields == nil {
		return b, err
	}
	fields, err := json.Marshal(o.Fields)
	if err != nil {
		return nil, err
	}
	if len(fields) < 2 || fields[0] != '{' {
		return nil, fmt.Errorf("fields of op %s are no object", o.Op)
	}
	if bytes.Equal(fields, []byte("{}")) {
		return b, nil
	}
	b[len(b)-1] = ','
	return append(b, fields[1:]...), nil
}

// BatchAnswer is the answer to a batch. A refused atomic batch is answered with a Refusal with FailedOp.
type BatchAnswer struct {
	Success bool       `json:"success"`
	Results []OpResult `json:"results"`
	Failed  int        `json:"failed"` // number of refused ops
}

// OpResult is the answer of one op's own call: an Answer, or a refusal with Error and Code in addition to the
// Answer's Success and Message.
type OpResult struct {
	Answer
	Error string `json:"error,omitempty"`
	Code  Code   `json:"code,omitempty"`
}

// Action is the body of POST /api/tasks/actions.
type Action struct {
	Action      string `json:"action"`          // "retry", "cancel" or "delete"
	Filter      Filter `json:"filter,omitzero"` // zero fields do not filter
	All         bool   `json:"all,omitempty"`   // all tasks, without a filter
	AddAttempts int32  `json:"add_attempts,omitempty"`
	DryRun      bool   `json:"dry_run,omitempty"`
	Expect      *int64 `json:"expect,omitempty"`
}

// Filter selects tasks, as the parameters of a list do.
type Filter struct {
	Status        string     `json:"status,omitempty"`
	TaskType      string     `json:"task_type,omitempty"`
	WorkerID      string     `json:"worker_id,omitempty"`
	ParentID      uint64     `json:"parent_id,omitempty"`
	Labels        Labels     `json:"labels,omitempty"`
	ShareKey      string     `json:"share_key,omitempty"`
	CreatedAfter  *time.Time `json:"created_after,omitempty"`
	CreatedBefore *time.Time `json:"created_before,omitempty"`
	ErrorGroup    string     `json:"error_group,omitempty"` // as shown by GET /api/failures
}

// Acted is the answer of POST /api/tasks/actions.
type Acted struct {
	Success bool  `json:"success"`
	Matched int64 `json:"matched"`
	Done    int64 `json:"done"`
	More    bool  `json:"more,omitempty"` // it ran out of time: call again
	// For a dry run: how many tasks it could change, and why it could not change the others.
	Can    *int64           `json:"can,omitempty"`
	Cannot map[string]int64 `json:"cannot,omitempty"`
}
