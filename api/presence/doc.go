// Package presence owns what a node remembers of who is at work: when it last heard from
// each worker, and when claims last asked for each task type. It is this process's own
// memory, bounded, and goes by a clock that no change of the wall clock moves; a new leader
// begins with nothing. It is on the way of every claim: a name that is known costs a hash
// and a map's write under a lock that few share, and no memory.
package presence
