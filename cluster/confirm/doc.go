// Package confirm sits between Raft and its transport and corrects how Raft handles
// messages: a leader proves that it still leads by answers to messages sent after the
// question, heartbeats change Raft only in its main loop, a peer that comes back gets
// entries at once, and a snapshot that is already covered is not installed again.
// docs/engine.md explains each of these.
//
//	confirmer.go    the transport; reads that wait for a majority's answers
//	pipeline.go     entries to a peer, and early reports that they are committed
//	comeback.go     failed calls, held back until the peer is heard again
//	heartbeats.go   heartbeats answered outside the main loop, only by reading
//	votegate.go     no vote before a majority has confirmed that the data folder is no old copy
//	seam.go         where the log meets the newest snapshot
//
// It stores nothing on disk and knows the node only through [Config], [NewScope] and
// [Confirmer.Follow]. Package cluster creates one [Confirmer] for each run of Raft, in this
// order: [New], [Confirmer.Start], Raft, [Confirmer.Follow]. Invariants:
//
//   - A read is confirmed when a majority of the voters has accepted a message of this term sent after the read arrived. Nonvoters and late
//     answers do not count.
//   - A heartbeat is answered here only if it changes nothing: it is of this node's term, from the leader that it follows.
//   - No message reports a commit index that is not on this node's own disk.
//   - After Close nothing reaches Raft, and nothing is answered on its behalf.
package confirm
