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

// operation describes an operation.
type operation struct {
	name     string
	noQueue  bool // its parameters name no queue by URL
	noResult bool // Query answers it without a result
	batch    bool // it has Entries
	entry    bool // it is about one message, which becomes the only entry
}

var operations = [Ops]operation{
	AddPermission:                {name: "AddPermission", noResult: true},
	CancelMessageMoveTask:        {name: "CancelMessageMoveTask", noQueue: true},
	ChangeMessageVisibility:      {name: "ChangeMessageVisibility", noResult: true, entry: true},
	ChangeMessageVisibilityBatch: {name: "ChangeMessageVisibilityBatch", batch: true},
	CreateQueue:                  {name: "CreateQueue", noQueue: true},
	DeleteMessage:                {name: "DeleteMessage", noResult: true, entry: true},
	DeleteMessageBatch:           {name: "DeleteMessageBatch", batch: true},
	DeleteQueue:                  {name: "DeleteQueue", noResult: true},
	GetQueueAttributes:           {name: "GetQueueAttributes"},
	GetQueueURL:                  {name: "GetQueueUrl", noQueue: true},
	ListDeadLetterSourceQueues:   {name: "ListDeadLetterSourceQueues"},
	ListMessageMoveTasks:         {name: "ListMessageMoveTasks", noQueue: true},
	ListQueues:                   {name: "ListQueues", noQueue: true},
	ListQueueTags:                {name: "ListQueueTags"},
	PurgeQueue:                   {name: "PurgeQueue", noResult: true},
	ReceiveMessage:               {name: "ReceiveMessage"},
	RemovePermission:             {name: "RemovePermission", noResult: true},
	SendMessage:                  {name: "SendMessage", entry: true},
	SendMessageBatch:             {name: "SendMessageBatch", batch: true},
	SetQueueAttributes:           {name: "SetQueueAttributes", noResult: true},
	StartMessageMoveTask:         {name: "StartMessageMoveTask", noQueue: true},
	TagQueue:                     {name: "TagQueue", noResult: true},
	UntagQueue:                   {name: "UntagQueue", noResult: true},
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
