package server

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/api/audit"
)

// startAudit writes the node's trail to the file at path until stop is called;
// SIGHUP closes the file and opens it again. Without a path it does nothing, and log
// is nil.
func startAudit(path string, node api.Node, logger hclog.Logger) (log *audit.Writer, stop func(), err error) {
	if path == "" {
		return nil, func() {}, nil
	}
	log, err = audit.Open(audit.Config{Path: path, Node: node, Logger: logger.Named("audit")})
	if err != nil {
		return nil, nil, err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	var wait sync.WaitGroup
	wait.Go(func() {
		for range hangups {
			log.Reopen()
		}
	})
	return log, func() {
		signal.Stop(hangups)
		close(hangups)
		wait.Wait()
		log.Close()
	}, nil
}
