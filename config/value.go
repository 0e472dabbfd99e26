package config

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/internal/timespan"
)

// value is the value of a setting, in a field of a Server. Set checks only the form; ok checks the value, so that
// Validate can list every mistake.
type value interface {
	pflag.Value
	// ok reports whether the value is valid; allowed describes valid values.
	ok() bool
	allowed() string
	// plain returns the value for JSON.
	plain() any
}

// text is a string, optionally one of a list.
type text struct {
	p     *string
	oneOf []string // nil: any
}

func (v *text) Set(s string) error { *v.p = s; return nil }
func (v *text) String() string     { return *v.p }
func (v *text) Type() string       { return "string" }
func (v *text) plain() any         { return *v.p }

func (v *text) ok() bool { return v.oneOf == nil || slices.Contains(v.oneOf, *v.p) }

func (v *text) allowed() string {
	if v.oneOf == nil {
		return "text"
	}
	words := slices.DeleteFunc(slices.Clone(v.oneOf), func(s string) bool { return s == "" })
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

type toggle struct{ p *bool }

func (v *toggle) Set(s string) error {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return errors.New("it must be " + v.allowed())
	}
	*v.p = b
	return nil
}
func (v *toggle) String() string   { return strconv.FormatBool(*v.p) }
func (v *toggle) Type() string     { return "bool" }
func (v *toggle) IsBoolFlag() bool { return true }
func (v *toggle) plain() any       { return *v.p }
func (v *toggle) ok() bool         { return true }
func (v *toggle) allowed() string  { return "true or false" }

// list is a list of strings without commas. The first Set replaces it, later ones add to it, as a repeated flag does.
type list struct {
	p   *[]string
	set bool
}

func (v *list) Set(s string) error {
	if !v.set {
		*v.p, v.set = nil, true
	}
	for e := range strings.SplitSeq(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			*v.p = append(*v.p, e)
		}
	}
	return nil
}
func (v *list) String() string  { return strings.Join(*v.p, ",") }
func (v *list) Type() string    { return "list" }
func (v *list) ok() bool        { return true }
func (v *list) allowed() string { return "list" }

func (v *list) plain() any {
	if *v.p == nil {
		return []string{}
	}
	return *v.p
}

// number is a count, or a number of bytes with an optional unit.
type number[T int | int64] struct {
	p        *T
	bytes    bool
	min, max T
	zero     string // the meaning of 0 if it is below min; "" if 0 is invalid then
}

func (v *number[T]) Set(s string) error {
	var n int64
	var err error
	if v.bytes {
		n, err = ParseBytes(s)
	} else if n, err = strconv.ParseInt(s, 10, 64); errors.Is(err, strconv.ErrRange) {
		err = errors.New("it must be " + v.allowed())
	} else if err != nil {
		err = errors.New("it must be a whole number")
	}
	if err != nil {
		return err
	}
	*v.p = T(n)
	return nil
}

func (v *number[T]) show(n T) string {
	if v.bytes {
		return FormatBytes(int64(n))
	}
	return strconv.FormatInt(int64(n), 10)
}
func (v *number[T]) String() string { return v.show(*v.p) }
func (v *number[T]) plain() any     { return *v.p }

func (v *number[T]) Type() string {
	if v.bytes {
		return "bytes"
	}
	return "int"
}

func (v *number[T]) ok() bool {
	return *v.p >= v.min && *v.p <= v.max || *v.p == 0 && v.zero != ""
}

func (v *number[T]) allowed() string {
	var ways []string
	if v.zero != "" {
		ways = append(ways, "0 ("+v.zero+")")
	}
	switch unbounded := int64(v.max) >= 1<<62; {
	case unbounded && v.min == 0 && v.bytes:
		ways = append(ways, "a number of bytes")
	case unbounded:
		ways = append(ways, "at least "+v.show(v.min))
	default:
		ways = append(ways, "from "+v.show(v.min)+" to "+v.show(v.max))
	}
	return strings.Join(ways, " or ")
}

// trailAgeMin is the shortest age of the trail that can be set.
const trailAgeMin = time.Minute

// age is a duration; 0 leaves the cluster's setting unchanged.
type age struct{ p *time.Duration }

func (v *age) Set(s string) error {
	d, err := timespan.Parse(s)
	if err != nil {
		return errors.New(`it must be a duration such as "90m", "24h" or "7d"`)
	}
	*v.p = d
	return nil
}
func (v *age) String() string { return shortDuration(*v.p) }
func (v *age) Type() string   { return "duration" }
func (v *age) plain() any     { return v.String() }

func (v *age) ok() bool { return *v.p == 0 || *v.p >= trailAgeMin }

func (v *age) allowed() string {
	return "0 (what the cluster has) or at least " + shortDuration(trailAgeMin)
}

// duration is a duration within bounds.
type duration struct {
	p        *time.Duration
	min, max time.Duration
	zero     string // the meaning of 0 if it is below min; "" if 0 is invalid then
}

func (v *duration) Set(s string) error {
	d, err := timespan.Parse(s)
	if err != nil {
		return errors.New(`it must be a duration such as "90s", "24h" or "7d"`)
	}
	*v.p = d
	return nil
}
func (v *duration) String() string { return shortDuration(*v.p) }
func (v *duration) Type() string   { return "duration" }
func (v *duration) plain() any     { return v.String() }

func (v *duration) ok() bool {
	return *v.p >= v.min && *v.p <= v.max || *v.p == 0 && v.zero != ""
}

func (v *duration) allowed() string {
	zero := ""
	if v.zero != "" {
		zero = "0 (" + v.zero + ") or "
	}
	return zero + "from " + shortDuration(v.min) + " to " + shortDuration(v.max)
}

// shortDuration formats d without trailing zero units, which time.Duration prints.
func shortDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// byteUnits are the units of sizes. The longest names come first, because "KiB" also ends in "B".
var byteUnits = [...]struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseBytes parses a number of bytes: an integer with an optional unit (B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB for
// powers of 1,000).
func ParseBytes(s string) (int64, error) {
	unit := int64(1)
	digits := s
	for _, u := range byteUnits {
		if d, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = strings.TrimRight(d, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errors.New(`it must be a number of bytes such as 1048576, "256MiB" or "1GiB"`)
	}
	if err != nil || n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, errors.New("it is more bytes than there can be")
	}
	return n * unit, nil
}

// FormatBytes formats n with the largest binary unit that leaves an integer; ParseBytes parses it.
func FormatBytes(n int64) string {
	for i := 3; i >= 0; i-- {
		if u := byteUnits[i]; n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
