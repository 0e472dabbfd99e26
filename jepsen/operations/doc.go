// Package operations does to a cluster what operators do, by the commands of the
// product, while producers and workers go on: it grows, shrinks, has a dead node
// replaced, is restarted node by node, is backed up, loses all its disks, and is
// restored into a new cluster; or it is upgraded from an earlier version, and back, and
// up again for good. All nodes are real processes.
//
// What the producers and workers were answered is the history that package check
// judges: once before the disks are lost, for all of it, and once after the
// restore, for what the backup holds and all that came after.
package operations
