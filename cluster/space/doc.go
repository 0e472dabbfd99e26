// Package space is what a node has left of its memory limit and of the disk of its data
// folder: what is refused for want of it, what goes by itself before that, and whether a
// snapshot fits.
//
// What it does not do: it proposes nothing and hands nothing over. It is told how much there
// is, and knows no node and no Raft.
package space
