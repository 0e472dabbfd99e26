// Package history records numbers of the last hours of a node: for every ten seconds how many tasks there were, how
// they ended and how long they took. It is kept only in memory. It reads the node's own state through a Source and
// changes nothing.
package history
