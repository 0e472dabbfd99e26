package main

import (
	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/config"
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

// boundAPI gives the API its bounds of requests and connections.
func boundAPI(c *api.Config, cfg *config.Server) {
	l := &cfg.Limits
	c.Limits = api.Limits{BodyBytes: l.BodyBytes, ValueBytes: l.ValueBytes, ErrorBytes: l.ErrorBytes, Depth: l.Depth, Items: l.Items}
	c.Connections = l.Connections
}
