package diary

import "time"

// Config is what a worker process is told, as JSON, by its one argument.
type Config struct {
	ID          string
	Nodes       []string // base URLs
	Way         string   // what it dials in place of each
	Store       string   // URL of what the work writes to
	Diary       string   // path
	Bare        bool     // claims and KeepAlive in place of a client.Worker
	Lease       time.Duration
	StopWait    time.Duration // of handlers, at SIGTERM
	Concurrency int           // handlers at a time
}
