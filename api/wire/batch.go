package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	// Op is submit, claim, complete, fail, extend, release, retry, cancel or
	// delete.
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
