package main

import (
	"errors"
	"fmt"
)

// The exit codes of the contract. A node that had to stop for its disk has
// others (docs/operations.md).
const (
	exitDone    = 0
	exitRefused = 1 // the server refused
	exitUsage   = 2 // wrong usage
	exitUnknown = 3 // no server, or the outcome is unknown
	exitNone    = 4 // nothing to claim, or not found
)

// usageError is returned for a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usageErrorf makes an error that ends the process with exit code 2. %w wraps.
func usageErrorf(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// exitCode is the one table from error to exit code.
func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitRefused
	}
}

// errorText is what the user reads of an error.
func errorText(err error) string { return err.Error() }
