package config

import (
	"fmt"
	"strings"
	"time"
)

// keyHashShown is how many digits of a key's hash are told: enough to find it in
// a file, too few to be of use.
const keyHashShown = 8

// Shown is a setting for somebody to read, without secrets.
type Shown struct {
	Name    string   // as in the file: http_tls.cert_file
	Lines   []string // for people: the value as a flag takes it; of keys a line each
	Plain   any      // as JSON has it
	Allowed string   // what it may be
	Origin  Origin
}

// Show returns every setting in the order of docs/configuration.md.
func (l *Loaded) Show() []Shown {
	var all []Shown
	for _, d := range settings() {
		if d.hidden {
			continue
		}
		v := d.value(&l.Server)
		all = append(all, Shown{Name: d.name, Lines: []string{v.String()}, Plain: v.plain(), Allowed: v.allowed(), Origin: l.Origins[d.name]})
	}
	keys := make([]string, 0, len(l.Keys))
	for i := range l.Keys {
		keys = append(keys, l.Keys[i].String())
	}
	lines := keys
	if len(lines) == 0 {
		lines = []string{""}
	}
	return append(all, Shown{Name: keysName, Lines: lines, Plain: keys, Allowed: (&list{}).allowed(), Origin: l.Origins[keysName]})
}

// String describes the key in a line, its hash shortened.
func (k Key) String() string {
	rate := "the standard rate"
	if r := k.RateLimitPerMinute; r != nil && *r == 0 {
		rate = "no rate limit"
	} else if r != nil {
		rate = fmt.Sprintf("%d/min", *r)
	}
	types := "all types"
	if len(k.TaskTypes) > 0 {
		types = "types " + strings.Join(k.TaskTypes, ",")
	}
	expires := ""
	if !k.ExpiresAt.IsZero() {
		expires = ", until " + k.ExpiresAt.UTC().Format(time.RFC3339)
	}
	from := ""
	if len(k.Addresses) > 0 {
		texts := make([]string, len(k.Addresses))
		for i, p := range k.Addresses {
			texts[i] = FormatAddress(p)
		}
		from = ", from " + strings.Join(texts, ",")
	}
	return fmt.Sprintf("%s (%s, %s..., %s, %s%s%s)", k.Name, strings.Join(k.AllRoles(), " and "), k.KeySHA256[:min(keyHashShown, len(k.KeySHA256))], rate, types, expires, from)
}
