// Package history owns what a node remembers of the last hours: every ten seconds how many
// tasks there were, how they ended and how long they took, in memory alone. It reads the node's own state
// through a Source and changes nothing.
package history
