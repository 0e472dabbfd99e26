// Package nodetest provides a node for the tests of the API: a real state machine, without Raft and disks.
package nodetest
