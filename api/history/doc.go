// Package history owns what a node remembers of the last hours: every ten seconds how many
// tasks there were and how they ended, in memory alone. It reads the node's own state
// through a Source and changes nothing.
package history
