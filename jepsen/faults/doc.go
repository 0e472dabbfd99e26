// Package faults injects failures of machines, disks and networks into a cluster of real processes.
//
// The faults, by the beginning of their names:
//
//   - kill, pause, rolling-restart: of processes, with SIGKILL, SIGSTOP, SIGTERM.
//   - cpu: processes that are stopped again and again, as under a quota.
//   - snapshot-kill: kills in the middle of requested snapshots.
//   - clock: wall clocks that jump by seconds or weeks in either direction, run
//     fast, or backward. The binary must be built with -tags faults.
//   - partition: no packets between some nodes, one way or both; flap: again and
//     again. Callers reach all nodes.
//   - net: packets that are late, lost, duplicated, out of order, or few at a time.
//   - disk-slow, disk-eio: fsync and fdatasync are slow, or fail with EIO;
//     disk-full, disk-hung: no room, or no answer. All on disks of lossyfs.
//   - disk-rot: flipped bits anywhere in log, vote and snapshots of one node. If
//     it does not start with them it is replaced, as an operator would do.
//   - member: a member loses its folder, is removed, loses its vote, or comes back
//     at another address; or the leadership is transferred.
//   - power: the process ends, and its disk loses unsynced data; torn: a random
//     part of it.
//
// All except those of processes and clocks need root and Linux.
//
// Faults can be combined, also as one with a name like kill-one+net-slow: each undoes only its own
// effects. All random choices depend on the seed, but how the machine reacts does not.
package faults
