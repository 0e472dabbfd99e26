package server

import (
	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/api/trail"
)

// startAudit writes the node's trail to the file at path until stop is called; SIGHUP closes and reopens the file.
// Without a path it does nothing and log is nil.
func startAudit(path string, node api.Node, logger hclog.Logger) (log *trail.Audit, stop func(), err error) {
	if path == "" {
		return nil, func() {}, nil
	}
	log, err = trail.OpenAudit(trail.AuditConfig{Path: path, Node: node, Logger: logger.Named("audit")})
	if err != nil {
		return nil, nil, err
	}
	stopListening := newHangups().call(log.Reopen, nil)
	return log, func() {
		go stopListening() // it waits for a SIGHUP under way, and so for the disk
		log.Close()
	}, nil
}
