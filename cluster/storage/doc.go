// Package storage manages a node's data folder: the node's identity, Raft's log, term and
// vote, snapshots, and the checks that keep all of it trustworthy. It knows nothing of a
// running node, of peers or of the contents of entries; package cluster opens it and hands
// its stores to Raft. Nothing else writes into the folder.
//
// A data folder ([Dir]) belongs to one node of one cluster and to one process at a time
// ([ErrDataDirInUse]). It contains
//
//	LOCK           locked while a process uses the folder; holds its pid
//	node.key       the node's key, written before anything else
//	identity.json  the node's identity
//	starts.json    the starts of other nodes that it was told of ([Starts])
//	raft.db        Raft's term and vote, and the log with --log-store boltdb: a bbolt file
//	wal/           the log: raft-wal's segments and segments.json
//	raft.tail      how far the log must reach at least
//	snapshots/     the newest two snapshots
//
// docs/formats.md describes each of them byte for byte. Invariants:
//
//   - Everything that is relied on was read from the disk completely and is as it was written: each file and each entry has a checksum. [Open] refuses damaged data ([ErrCorruptLog],
//     [ErrCorruptSnapshot], [ErrCorruptIdentity]), and a node whose folder it refuses has to join again as a new member. What was acknowledged is on the disks of a majority of the others; a node
//     that had lost a part of it, or its vote, could lead a majority that never saw it.
//   - An append has returned only when it is on disk, except for a leader's commands: those are under way, and [Log.AwaitStored] and [Log.Stored] tell when they are on disk.
//   - A term is never on disk with the candidate of an earlier one.
//   - Nothing is retried: the first call that fails or hangs ends the process (Config.Fatal).
//   - Large files are written and removed in small steps, because the log's next sync waits for them.
package storage
