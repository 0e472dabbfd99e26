// Package storage is a node's data folder: who the node is, Raft's log, term and vote,
// snapshots, and what keeps all of that honest. It knows nothing of a running node, of
// peers or of what entries say; package cluster opens it and hands its stores to Raft.
// Nothing else writes into the folder.
//
// A data folder ([Dir]) belongs to one node of one cluster and to one process at a time
// ([ErrDataDirInUse]). It holds
//
//	LOCK           locked while a process uses the folder; holds its pid
//	node.key       the node's key, written before anything else
//	identity.json  who the node is
//	starts.json    what it was told of the starts of others ([Starts])
//	raft.db        Raft's term and vote, and the log with --log-store boltdb: a bbolt file
//	wal/           the log: raft-wal's segments and segments.json
//	raft.tail      how far the log has to reach at least
//	snapshots/     the newest two snapshots
//
// docs/formats.md has each of them byte for byte. What always holds:
//
//   - What is relied on was read from the disk, whole, and is as it was written: each
//     file and each entry has a checksum. [Open] refuses what is damaged
//     ([ErrCorruptLog], [ErrCorruptSnapshot], [ErrCorruptIdentity]), and a node whose
//     folder it refuses has to join again as a new member. What was acknowledged is on a
//     majority of the others' disks, and a node that had lost a part of it, or its vote,
//     could lead a majority that never saw it.
//   - An append has returned only when it is on disk, but for a leader's commands: those
//     are on their way, and [Log.AwaitStored] and [Log.Stored] say when they are there.
//   - A term is never on disk with the candidate of an earlier one.
//   - Nothing is tried twice: the first call that fails or hangs ends the process
//     (Config.Fatal).
//   - Large files are written and removed bit by bit, since the log's next sync waits
//     behind them.
package storage
