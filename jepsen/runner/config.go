package runner

import (
	"io"
	"time"
)

// Config says what to run.
type Config struct {
	Binary string
	Dir    string // for the nodes' data and logs; it exists
	Nodes  int
	// Time bounds the load under faults, as does Tasks.
	Time time.Duration
	// Tasks, if not 0, is the approximate number of tasks to submit. The faults then come
	// in the order of their names, each once, spread over them.
	Tasks int
	// Parents and Steps are as in workload.Config.
	Parents, Steps int
	// Faults are names in the catalog; a name that ends in * stands for all with that
	// beginning. None: the cluster is left alone.
	Faults  []string
	Seed    int64
	Clients int  // 0 = 24
	Rate    int  // calls per second in all, approximately; 0 = 500
	Readers int  // connections of heavy reads in addition
	Shared  bool // as in history.Run
	// Plant is the bug that the binary was built with, only recorded.
	Plant    string
	Revision string // of the source, only recorded
	Out      io.Writer
}

const (
	defaultClients = 24
	defaultRate    = 500
	// quietStart and quietEnd are the parts of the load without faults.
	quietStart = 2 * time.Second
	quietEnd   = 4 * time.Second

	startTimeout = 60 * time.Second
	// injectTimeout bounds the start of a fault, and its end. A rolling restart happens
	// completely within the start.
	injectTimeout = 2 * time.Minute
	healTimeout   = 60 * time.Second
	drainTimeout  = 90 * time.Second
	finalTimeout  = 2 * time.Minute
)
