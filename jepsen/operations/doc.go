// Package operations performs operators' acts on a cluster, with the commands of the
// product, while producers and workers go on: the cluster grows, shrinks, has a dead node
// replaced, is restarted node by node, is backed up, loses all its disks, and is restored
// into a new cluster; or it is upgraded from an earlier version, and back, and up again for
// good. All nodes are real processes.
//
// The answers to the producers and workers form the history that package check judges: once
// before the disks are lost, for all of it, and once after the restore, for the contents of
// the backup and everything after it.
package operations
