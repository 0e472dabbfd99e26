package cli

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/timespan"
)

// none is the flag value that clears a setting of a type or a default of the server.
const none = "none"

// taskDefaults holds the flags for settings that tasks get when they name none themselves. A type and the server both
// have them.
type taskDefaults struct {
	lease, maxAttempts, backoff, retention string
}

// addTo adds the flags. Their help begins with what.
func (d *taskDefaults) addTo(f *pflag.FlagSet, what string) {
	f.StringVar(&d.lease, "lease", "", what+" lease, as 2m, or none")
	f.StringVar(&d.maxAttempts, "max-attempts", "", what+", 0: no limit, or none")
	f.StringVar(&d.backoff, "backoff", "", what+", "+backoffForm+", or none; 0s is no wait")
	f.StringVar(&d.retention, "retention", "", what+": 12h, 7d, 0 (gone at once), forever, or none")
}

func (d *taskDefaults) settings() []setting {
	return []setting{
		{"lease_ms", d.lease, parseLease},
		{"max_attempts", d.maxAttempts, func(v string) (any, error) { return parseCount("--max-attempts", v) }},
		{"backoff", d.backoff, func(v string) (any, error) { return parseBackoff(v) }},
		{"retention_ms", d.retention, func(v string) (any, error) { return parseRetention(v) }},
	}
}

// setting is one field of a PATCH, with the flag's value for it.
type setting struct {
	name, value string
	parse       func(value string) (any, error)
}

// addSettings adds the settings that have a flag to a PATCH. A null clears a setting; missing settings do not
// change.
func addSettings(fields map[string]any, settings []setting) error {
	for _, s := range settings {
		switch s.value {
		case "":
			continue
		case none:
			fields[s.name] = nil
			continue
		}
		value, err := s.parse(s.value)
		if err != nil {
			return err
		}
		fields[s.name] = value
	}
	return nil
}

func parseCount(flag, value string) (any, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return nil, term.UsageErrorf("%s is %q: it must be a whole number, not negative, or none", flag, value)
	}
	return n, nil
}

func parseLease(value string) (any, error) {
	d, err := timespan.Parse(value)
	if err != nil {
		return nil, term.UsageErrorf("--lease is %q: it must be a time as 30s or 2m, or none", value)
	}
	return wholeMS("--lease", d)
}
