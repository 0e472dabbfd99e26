package sqs

// Op is an operation of the model.
type Op uint8

// The operations.
const (
	AddPermission Op = iota
	CancelMessageMoveTask
	ChangeMessageVisibility
	ChangeMessageVisibilityBatch
	CreateQueue
	DeleteMessage
	DeleteMessageBatch
	DeleteQueue
	GetQueueAttributes
	GetQueueURL
	ListDeadLetterSourceQueues
	ListMessageMoveTasks
	ListQueues
	ListQueueTags
	PurgeQueue
	ReceiveMessage
	RemovePermission
	SendMessage
	SendMessageBatch
	SetQueueAttributes
	StartMessageMoveTask
	TagQueue
	UntagQueue
	Ops // their number
)

type operation struct {
	name     string
	noQueue  bool // its parameters name no queue by URL
	noResult bool // Query answers it without a result
	entry    bool // it is about one message, which becomes the only entry
	batch    bool // it has Entries
}

var operations = [Ops]operation{
	AddPermission: {name: "AddPermission", noResult: true}, RemovePermission: {name: "RemovePermission", noResult: true},
	CreateQueue: {name: "CreateQueue", noQueue: true}, DeleteQueue: {name: "DeleteQueue", noResult: true},
	GetQueueURL: {name: "GetQueueUrl", noQueue: true}, ListQueues: {name: "ListQueues", noQueue: true},
	GetQueueAttributes: {name: "GetQueueAttributes"}, SetQueueAttributes: {name: "SetQueueAttributes", noResult: true},
	ListQueueTags: {name: "ListQueueTags"}, TagQueue: {name: "TagQueue", noResult: true}, UntagQueue: {name: "UntagQueue", noResult: true},
	PurgeQueue: {name: "PurgeQueue", noResult: true}, ListDeadLetterSourceQueues: {name: "ListDeadLetterSourceQueues"},
	StartMessageMoveTask: {name: "StartMessageMoveTask", noQueue: true}, ListMessageMoveTasks: {name: "ListMessageMoveTasks", noQueue: true},
	CancelMessageMoveTask:        {name: "CancelMessageMoveTask", noQueue: true},
	ReceiveMessage:               {name: "ReceiveMessage"},
	SendMessage:                  {name: "SendMessage", entry: true},
	SendMessageBatch:             {name: "SendMessageBatch", batch: true},
	DeleteMessage:                {name: "DeleteMessage", noResult: true, entry: true},
	DeleteMessageBatch:           {name: "DeleteMessageBatch", batch: true},
	ChangeMessageVisibility:      {name: "ChangeMessageVisibility", noResult: true, entry: true},
	ChangeMessageVisibilityBatch: {name: "ChangeMessageVisibilityBatch", batch: true},
}

// String returns the operation's name in the model.
func (o Op) String() string { return operations[o].name }

// opOf finds an operation by its name.
func opOf(name string) (Op, bool) {
	for o := range operations {
		if operations[o].name == name {
			return Op(o), true
		}
	}
	return 0, false
}
