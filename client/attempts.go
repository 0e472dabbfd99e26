package client

import (
	"fmt"
	"math"
)

// UnlimitedAttempts in Task.MaxAttempts and TypeSettings.MaxAttempts is no limit.
const UnlimitedAttempts = -1

// checkAttempts refuses what is no limit of attempts.
func checkAttempts(n int) error {
	if n < UnlimitedAttempts || n > math.MaxInt32 {
		return fmt.Errorf("max attempts is %d: it must be 1 to %d, 0 for the default or %d for no limit", n, math.MaxInt32, UnlimitedAttempts)
	}
	return nil
}

// wireAttempts is a limit of attempts as it travels: nil is the default, and 0 no
// limit.
func wireAttempts(n int) *int32 {
	switch n {
	case 0:
		return nil
	case UnlimitedAttempts:
		return new(int32(0))
	}
	return new(int32(n))
}

// attemptsFromWire is the limit of a task or a type that is read.
func attemptsFromWire(n int32) int {
	if n == 0 {
		return UnlimitedAttempts
	}
	return int(n)
}
