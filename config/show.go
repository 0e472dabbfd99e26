package config

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// keyHashShown is the number of digits shown of a key's hash: enough to find it in a file, too few to be useful
// otherwise.
const keyHashShown = 8

// Shown is a setting for display, without secrets.
type Shown struct {
	Name    string   // as in the file, such as http_tls.cert_file
	Lines   []string // for people: the value as a flag takes it, or one line per key
	Plain   any      // for JSON
	Allowed string   // valid values
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
	all = append(all, l.showRoles())
	return append(all, Shown{Name: keysName, Lines: lines, Plain: keys, Allowed: (&list{}).allowed(), Origin: l.Origins[keysName]})
}

// showRoles shows the rights of groups.
func (l *Loaded) showRoles() Shown {
	roles := make([]string, 0, len(l.OIDC.Roles))
	for i := range l.OIDC.Roles {
		roles = append(roles, l.OIDC.Roles[i].String())
	}
	lines := roles
	if len(lines) == 0 {
		lines = []string{""}
	}
	return Shown{Name: rolesName, Lines: lines, Plain: roles, Allowed: (&list{}).allowed(), Origin: l.Origins[rolesName]}
}

// String describes the key on one line, with its hash shortened.
func (k Key) String() string {
	rate, types, from := describeGrant(k.RateLimitPerMinute, k.TaskTypes, k.Addresses)
	expires := ""
	if !k.ExpiresAt.IsZero() {
		expires = ", until " + k.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s (%s, %s..., %s, %s%s%s)", k.Name, strings.Join(k.AllRoles(), " and "), k.KeySHA256[:min(keyHashShown, len(k.KeySHA256))], rate, types, expires, from)
}

// String describes the role on one line.
func (r TokenRole) String() string {
	rate, types, from := describeGrant(r.RateLimitPerMinute, r.TaskTypes, r.Addresses)
	return fmt.Sprintf("%s (%s, %s, %s%s)", r.Group, strings.Join(r.AllRoles(), " and "), rate, types, from)
}

// describeGrant describes the rate, the task types and, beginning with a comma, the addresses of a key or role.
func describeGrant(perMinute *int64, taskTypes []string, addresses []netip.Prefix) (rate, types, from string) {
	rate, types = "the standard rate", "all types"
	if perMinute != nil && *perMinute == 0 {
		rate = "no rate limit"
	} else if perMinute != nil {
		rate = fmt.Sprintf("%d/min", *perMinute)
	}
	if len(taskTypes) > 0 {
		types = "types " + strings.Join(taskTypes, ",")
	}
	if len(addresses) > 0 {
		texts := make([]string, len(addresses))
		for i, p := range addresses {
			texts[i] = FormatAddress(p)
		}
		from = ", from " + strings.Join(texts, ",")
	}
	return rate, types, from
}
