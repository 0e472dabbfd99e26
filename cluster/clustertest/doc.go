// Package clustertest runs whole clusters in memory for tests: real nodes and real Raft
// over pipes, with stores that outlive a restart. Inside testing/synctest, minutes of
// elections and leases take milliseconds.
//
// It does not cover disks and the peer port, which package cluster tests itself.
//
//	c := clustertest.New(t, 3)
//	leader := c.Leader()
//	c.Partition(leader)
//	c.Leader() // another one
//	c.Heal()
//	c.EnsureSame()
package clustertest
