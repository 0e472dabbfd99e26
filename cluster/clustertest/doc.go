// Package clustertest runs whole clusters in memory, for tests: real nodes and
// real Raft over pipes, with stores that outlive a restart. It works inside
// testing/synctest, where minutes of elections and leases take milliseconds.
//
// It tests no disk and no peer port: package cluster's own tests do.
//
//	c := clustertest.New(t, 3)
//	leader := c.Leader()
//	c.Partition(leader)
//	c.Leader() // another one
//	c.Heal()
//	c.EnsureSame()
package clustertest
