package diary

import "time"

// Config is the configuration of a worker process, as JSON in its only argument.
type Config struct {
	ID          string
	Nodes       []string // base URLs
	Way         string   // to dial in place of each node
	Store       string   // URL to which the work writes
	Diary       string   // path
	Bare        bool     // uses claims and KeepAlive instead of a client.Worker
	Lease       time.Duration
	StopWait    time.Duration // of handlers, at SIGTERM
	Concurrency int           // concurrent handlers
}
