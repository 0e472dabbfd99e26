// Package nodetest has a node for the tests of the API: a real state machine, without Raft
// and without disks. Only tests import it.
package nodetest
