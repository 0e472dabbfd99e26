package server

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api"
)

// startAudit writes the node's trail to the file at path until stop is called;
// SIGHUP closes the file and opens it again. Without a path it does nothing, and audit
// is nil.
func startAudit(path string, node api.Node, logger hclog.Logger) (audit *api.Audit, stop func(), err error) {
	if path == "" {
		return nil, func() {}, nil
	}
	audit, err = api.OpenAudit(api.AuditConfig{Path: path, Node: node, Logger: logger.Named("audit")})
	if err != nil {
		return nil, nil, err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	var wait sync.WaitGroup
	wait.Go(func() {
		for range hangups {
			audit.Reopen()
		}
	})
	return audit, func() {
		signal.Stop(hangups)
		close(hangups)
		wait.Wait()
		audit.Close()
	}, nil
}
