// Package latency counts how long things took: in buckets of which each is at most a quarter
// wider than it begins at, so what is read of them is right to about an eighth.
//
// What holds: a histogram takes the same memory however much is counted in it.
package latency
