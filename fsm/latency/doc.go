// Package latency counts how long things took. Each bucket is at most a quarter wider than
// its lower bound, so results are accurate to about an eighth.
//
// A histogram has a fixed size in memory.
package latency
