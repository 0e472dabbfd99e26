// Package parents puts parents with steps through a cluster of real processes,
// 100,000 of them if asked, while somebody else kills its nodes, and says whether
// each ended exactly once and rightly.
//
// Producers submit parents of every shape in batches and cancel a few; workers
// claim steps in batches, complete or fail them, and die with claims in their
// hands; processors contend for the finalization of those parents that want one,
// and die with that in their hands. A follower reads the cluster's trail live,
// from node to node, into a ledger. At the end the ledger, the answers and the
// state that the nodes hold are held against what each parent must have become,
// which follows from the parent alone: shape.go knows.
//
// It shares no code with the server.
package parents
