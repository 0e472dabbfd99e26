package sqs

import (
	"strings"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Host gives an operation access to the server that got its request. A method whose ok is false has answered the
// request already, with an error, and the operation returns.
type Host interface {
	// Propose replicates a command.
	Propose(cmd command.Command) (res fsm.Result, ok bool)
	// Claim replicates a claim, which waits for up to wait for something to claim.
	Claim(cmd command.ClaimNext, wait time.Duration) (res fsm.Result, ok bool)
	// Read calls fn with a state that has every change that was acknowledged before.
	Read(fn func(m *fsm.Machine, now fsm.Stamp)) (ok bool)
	// Look calls fn with the leader's present state, which may lack acknowledged changes. It costs less than Read.
	Look(fn func(m *fsm.Machine)) (ok bool)
	// Purge cancels the tasks of a type that have not ended.
	Purge(taskType string) (ok bool)
	// DeletedLate counts a delete of a message that was received again since.
	DeletedLate()
	// MaySee reports whether the caller has the task type.
	MaySee(taskType string) bool
	// Operates reports whether the caller has the role operator.
	Operates() bool
	// Caller is the name of the caller's credential, "" on an open server.
	Caller() string
	// URL returns the URL of a queue, ARN its name for policies.
	URL(queue string) string
	ARN(queue string) string
	// Now is the time of the leader's calendar.
	Now() time.Time
}

// workerOf returns the worker of the caller's claims. Workers have no dots in their names.
func workerOf(h Host) string {
	if name := h.Caller(); name != "" {
		return "sqs-" + strings.ReplaceAll(name, ".", "_")
	}
	return "sqs"
}

// Do performs a call. The answer is nil if the host has answered already.
func Do(h Host, c *Call) (*Answer, *Error) {
	if do := handlers[c.Op]; do != nil {
		return do(op{h, c})
	}
	return nil, Unsupported("The operation " + c.Op.String() + " is not supported by this endpoint.")
}

var handlers = [Ops]func(op) (*Answer, *Error){
	CreateQueue: op.createQueue, DeleteQueue: op.deleteQueue, PurgeQueue: op.purgeQueue, GetQueueURL: op.getQueueURL, ListQueues: op.listQueues,
	GetQueueAttributes: op.getQueueAttributes, SetQueueAttributes: op.setQueueAttributes,
	TagQueue: op.tag, UntagQueue: op.tag, ListQueueTags: op.listQueueTags,
	SendMessage: op.send, SendMessageBatch: op.send, ReceiveMessage: op.receive, DeleteMessage: op.delete, DeleteMessageBatch: op.delete,
	ChangeMessageVisibility: op.changeVisibility, ChangeMessageVisibilityBatch: op.changeVisibility, ListDeadLetterSourceQueues: op.listQueues,
	StartMessageMoveTask: op.startMove, ListMessageMoveTasks: op.listMoves, CancelMessageMoveTask: op.cancelMove,
}

// op is a call and what it asks of the host.
type op struct {
	Host
	c *Call
}

// answered is returned when the host has answered already.
func answered() (*Answer, *Error) { return nil, nil }
