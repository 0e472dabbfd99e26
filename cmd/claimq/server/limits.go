package server

import (
	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/descriptors"
)

// boundNode gives the node its bounds of memory, disk and what waits.
func boundNode(c *cluster.Config, cfg *config.Server) {
	c.MemoryLimit = cfg.MemoryLimit
	if c.MemoryLimit == 0 {
		c.MemoryLimit = cluster.DefaultMemoryLimit()
	}
	c.DiskFreeMin = uint64(cfg.DiskFreeMin)
	c.InFlightMax = cfg.Limits.InFlight
	c.WaitingClaimsMax = cfg.Limits.WaitingClaims
}

// boundConnections holds limits.connections, and what the peer port may have, against the files
// that the process may open: with more connections none would be left for the log.
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

// What the bodies of requests that are received may take together, with what is made of
// them: this part of the memory limit, within these bounds. The longest body fits.
const (
	bodiesPart = 4
	bodiesMin  = 32 << 20
	bodiesMax  = 768 << 20
)

// What the answers that are not written yet may take together: this part of the
// memory limit, within these bounds. The longest answer fits.
const (
	answersPart = 8
	answersMin  = 32 << 20
	answersMax  = 256 << 20
)

// What the history may take: this part of the memory limit, up to what 100 types
// take.
const (
	historyPart = 64
	historyMax  = 9 << 20
)

// boundAPI gives the API its bounds of requests and connections; tasks may take
// memoryLimit bytes.
func boundAPI(c *api.Config, cfg *config.Server, memoryLimit int64) {
	c.BodiesBytes = min(max(memoryLimit/bodiesPart, bodiesMin), bodiesMax)
	c.AnswersBytes = min(max(memoryLimit/answersPart, answersMin), answersMax)
	c.HistoryBytes = min(memoryLimit/historyPart, historyMax)
	l := &cfg.Limits
	c.Limits = bound.Limits{BodyBytes: l.BodyBytes, ValueBytes: l.ValueBytes, ErrorBytes: l.ErrorBytes, Depth: l.Depth, Items: l.Items}
	c.Connections, c.ConnectionsPerAddress = l.Connections, l.ConnectionsPerAddress
	c.WaitsPerKey = max(l.WaitingClaims/2, 1) // one key is not to take them all
}
