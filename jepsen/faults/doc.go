// Package faults does to a cluster of real processes what machines, disks and
// networks do to it.
//
// There are, by the beginning of their names:
//
//   - kill, pause, rolling-restart: of processes, with SIGKILL, SIGSTOP, SIGTERM.
//   - cpu: processes that are stopped again and again, as under a quota.
//   - snapshot-kill: kills in the midst of snapshots that were asked for.
//   - clock: wall clocks that jump by seconds or weeks, either way, run fast, or
//     backward. The binary must be built with -tags faults.
//   - partition: no packets between some nodes, one way or both; flap: again and
//     again. Callers reach all nodes.
//   - net: packets late, lost, twice, out of order, or few at a time.
//   - disk-slow, disk-eio: fsync and fdatasync slow, or failing with EIO; disk-full, disk-hung: no room, or no
//     answer. All on disks of lossyfs.
//   - disk-rot: flipped bits anywhere in log, vote and snapshots of one node. One
//     that does not start with them is replaced, as an operator does it.
//   - member: a member that loses its folder, is removed, loses its vote, comes back
//     at another address; a leadership that is handed over.
//   - power: the process ends, and its disk loses what was not synced; torn, a
//     random part of it.
//
// All but what happens to processes and clocks need root and Linux.
//
// Faults can be made together, also as one with a name like kill-one+net-slow:
// each undoes only what it did itself. All that is chosen at random is chosen by
// the seed; what the machine makes of it is not.
package faults
