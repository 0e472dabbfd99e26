// Package sqs drives the endpoint for clients of Amazon SQS by clients that others wrote, against nodes as processes.
package sqs
