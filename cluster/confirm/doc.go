// Package confirm stands between Raft and its transport, and puts right what Raft makes of
// messages there: that a leader still leads is shown by answers to messages sent after
// the question, heartbeats change Raft in its main loop alone, who comes back is sent
// entries at once, and a snapshot that is covered is not taken again. docs/engine.md has
// each of them with its reason.
//
//	confirmer.go    the transport; reads that wait for a majority's answers
//	pipeline.go     entries to a peer, and what tells it soon that they are committed
//	comeback.go     failed calls, held back until the peer is heard again
//	heartbeats.go   heartbeats answered beside the main loop, by reading alone
//	votegate.go     no vote before a majority has said that the data folder is no old copy
//	seam.go         where the log meets the newest snapshot
//
// It keeps nothing on disk and knows of a node only what [Config], [NewScope] and
// [Confirmer.Follow] tell. Package cluster makes one [Confirmer] for each run of Raft, in
// this order: [New], [Confirmer.Start], Raft, [Confirmer.Follow]. What always holds:
//
//   - A read is confirmed when a majority of the voters has accepted a message of this
//     term that was sent after the read came. Nonvoters and late answers do not count.
//   - A heartbeat is answered here only if it changes nothing: of this node's term, from
//     the leader that it follows.
//   - No message tells of a commit index that this node's own disk has not.
//   - After Close nothing reaches Raft, and nothing is answered by what it says.
package confirm
