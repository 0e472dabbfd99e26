package fsm

import "testing"

// seeds is how many of so many seeds a test tries: with -short, a quarter.
func seeds(all uint64) uint64 {
	if testing.Short() {
		return (all + 3) / 4
	}
	return all
}
