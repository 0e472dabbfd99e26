// Package sqs implements the protocol of Amazon SQS. Decode turns requests of both forms, AWS JSON 1.0 and Query, into
// a Call, and Answer and Error are written in the form of the request. Do performs a Call on the tasks of a type,
// through a Host. Package sigv4 below checks signatures. The package has no connections, and does not know how a
// command is replicated.
package sqs
