package cli

import (
	"errors"
	"strconv"
)

// positive is the value of a flag that is a number from 1 on, 0 while it is not
// given. A 0 that is given is refused: a token or an id that a script failed to
// read must not turn off the check that it was given for.
type positive uint64

// Set is of pflag.Value.
func (p *positive) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return errors.New("it must be a positive number")
	}
	*p = positive(n)
	return nil
}

// String is of pflag.Value.
func (p *positive) String() string { return strconv.FormatUint(uint64(*p), 10) }

// Type is of pflag.Value.
func (p *positive) Type() string { return "uint" }
