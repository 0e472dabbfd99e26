// Package space tracks what a node has left of its memory limit and of the disk of its data
// folder: which commands are refused for lack of it, what is evicted and forgotten before
// that, and whether a snapshot fits.
//
// It proposes nothing and transfers no leadership. It is given the measurements, and knows
// no node and no Raft.
package space
