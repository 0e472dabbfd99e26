// Package presence remembers which workers are active: when a node last heard from each worker, and when claims last
// asked for each task type. This is kept in memory, bounded, and by a monotonic clock; a new leader begins with
// nothing. Every claim passes through it, so recording a known name costs only a hash and a map write under a lock
// that few share, and no allocation.
package presence
