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
	// Time is how long the load under faults lasts, with Tasks at most.
	Time time.Duration
	// Tasks, if not 0, is how many tasks the load submits, about. The faults come in the
	// order of their names, each once, spread over them.
	Tasks int
	// Parents and Steps are as in workload.Config.
	Parents, Steps int
	// Faults are names of the catalog; a name that ends in * stands for all that
	// begin so. None: the cluster is left alone.
	Faults  []string
	Seed    int64
	Clients int  // 0 = 24
	Rate    int  // calls per second in all, about; 0 = 500
	Readers int  // connections of heavy reads beside them
	Shared  bool // as in history.Run
	// Plant is the bug that the binary was built with, for the record.
	Plant    string
	Revision string // of the source, for the record
	Out      io.Writer
}

const (
	defaultClients = 24
	defaultRate    = 500
	// quietStart and quietEnd are the parts of the load without faults.
	quietStart = 2 * time.Second
	quietEnd   = 4 * time.Second

	startTimeout = 60 * time.Second
	// injectTimeout bounds what a fault takes to begin, or to be undone. A rolling
	// restart begins and ends in one.
	injectTimeout = 2 * time.Minute
	healTimeout   = 60 * time.Second
	drainTimeout  = 90 * time.Second
	finalTimeout  = 2 * time.Minute
)
