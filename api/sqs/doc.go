// Package sqs is the protocol of Amazon SQS: requests of either form, AWS JSON 1.0 and Query, become one Call, and one
// answer or error is written in the form that the request had. It checks signatures, and says what each operation does
// to the tasks of a type, through a Host. It has no connections, and knows nothing of how a command is replicated.
package sqs
