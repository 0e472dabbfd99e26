package term

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/internal/timespan"
)

// durationValue is the value of a flag that takes a length of time as ShowDuration prints it.
type durationValue struct{ p *time.Duration }

// DurationVar defines a flag for a length of time.
func DurationVar(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var(durationValue{p}, name, usage)
}

func (v durationValue) Set(s string) (err error) {
	*v.p, err = timespan.Parse(s)
	return err
}

func (v durationValue) Type() string { return "duration" }

// String returns "0" for no time, which help does not show as a default.
func (v durationValue) String() string {
	if v.p == nil || *v.p == 0 {
		return "0"
	}
	return v.p.String()
}
