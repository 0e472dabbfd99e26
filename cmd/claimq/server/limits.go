package server

import (
	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/descriptors"
)

// boundNode sets the node's bounds of memory, disk and waiting calls.
func boundNode(c *cluster.Config, cfg *config.Server) {
	c.MemoryLimit = cfg.MemoryLimit
	if c.MemoryLimit == 0 {
		c.MemoryLimit = cluster.DefaultMemoryLimit()
	}
	c.DiskFreeMin = uint64(cfg.DiskFreeMin)
	c.InFlightMax = cfg.Limits.InFlight
	c.WaitingClaimsMax = cfg.Limits.WaitingClaims
}

// boundConnections checks limits.connections, and the connections of the peer port, against the number of files that
// the process may open, because otherwise none might be left for the log.
func (s *setup) boundConnections() error {
	limit, err := descriptors.Limit()
	if err != nil {
		return err
	}
	wanted := s.cfg.Limits.Connections
	s.cfg.Limits.Connections, s.peerConnections, err = descriptors.Divide(limit, wanted, cluster.PeerConnectionsMax)
	if err != nil {
		return err
	}
	if s.cfg.Limits.Connections < wanted {
		s.logger.Warn("limits.connections does not fit into the files that this process may open: fewer connections are taken; raise RLIMIT_NOFILE (LimitNOFILE=, ulimit -n)",
			"limits.connections", wanted, "rlimit_nofile", limit, "connections", s.cfg.Limits.Connections, "peer_connections", s.peerConnections)
	}
	return nil
}

// Bounds of the memory for bodies being received, with what is made of them, as a part of the memory limit. The
// longest body fits.
const (
	bodiesPart = 4
	bodiesMin  = 32 << 20
	bodiesMax  = 768 << 20
)

// Bounds of the memory for answers not yet written, as a part of the memory limit. The longest answer fits.
const (
	answersPart = 8
	answersMin  = 32 << 20
	answersMax  = 256 << 20
)

// boundAPI sets the API's bounds of requests and connections; tasks may use memoryLimit bytes.
func boundAPI(c *api.Config, cfg *config.Server, memoryLimit int64) {
	c.BodiesBytes = min(max(memoryLimit/bodiesPart, bodiesMin), bodiesMax)
	c.AnswersBytes = min(max(memoryLimit/answersPart, answersMin), answersMax)
	l := &cfg.Limits
	c.Limits.BodyBytes, c.Limits.ValueBytes, c.Limits.ErrorBytes = l.BodyBytes, l.ValueBytes, l.ErrorBytes
	c.Limits.Depth, c.Limits.Items = l.Depth, l.Items
	c.Connections, c.ConnectionsPerAddress = l.Connections, l.ConnectionsPerAddress
	c.WaitsPerKey = max(l.WaitingClaims/2, 1) // one key must not take them all
}
