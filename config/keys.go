package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	// keysMax bounds the keys of a server.
	keysMax = 10_000
	// keyRateMax bounds rate_limit_per_minute. A higher rate is pointless, because 0 means no bound.
	keyRateMax = 1_000_000_000
	// keyTypesMax bounds the task types of a key.
	keyTypesMax = 1_000
	// keyAddressesMax bounds the addresses of a key.
	keyAddressesMax = 64
)

var (
	keyHashPattern  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	taskTypePattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)
)

// keyRoles are the roles of keys, from the least to the most powerful.
var keyRoles = [...]string{"reader", "producer", "worker", "operator"}

// readKeysFile adds the keys of the file at path.
func (l *loader) readKeysFile(path string) {
	root, err := readYAML(path)
	if err != nil {
		l.mistake("read keys_file: %w", err)
		return
	}
	f := fileReader{loader: l, path: path}
	if root == nil {
		l.mistake("%s: it has no keys: a file without keys must say so as keys: []", path)
		return
	}
	f.entries(root, func(key, value *yaml.Node) {
		if key.Value != keysName {
			f.mistake("%s: %s; a keys_file has only keys", f.at(key), unknown("setting", key.Value, []string{keysName}))
			return
		}
		f.keys(value)
	})
}

// keys adds the keys in a list.
func (f *fileReader) keys(sequence *yaml.Node) {
	if sequence.Kind != yaml.SequenceNode {
		f.mistake("%s: keys must be a list of mappings with name, role and key_sha256", f.at(sequence))
		return
	}
	if len(f.loaded.Keys)+len(sequence.Content) > keysMax {
		f.mistake("%s: there are over %d keys", f.at(sequence), keysMax)
		return
	}
	f.loaded.KeyFiles = append(f.loaded.KeyFiles, f.path)
	origin := Origin{FromFile, f.path}
	if before := f.loaded.Origins[keysName]; before.From == FromFile && before.Name != f.path {
		origin.Name = before.Name + ", " + f.path
	}
	f.loaded.Origins[keysName] = origin
	for _, e := range sequence.Content {
		if e = resolve(e); e.Kind != yaml.MappingNode {
			f.mistake("%s: a key must be a mapping with name, role and key_sha256", f.at(e))
			continue
		}
		f.loaded.Keys = append(f.loaded.Keys, f.key(e))
	}
}

func (f *fileReader) key(m *yaml.Node) Key {
	var k Key
	f.entries(m, func(field, value *yaml.Node) {
		single := value.Kind == yaml.ScalarNode
		switch name := field.Value; {
		case isNull(value):
			// As if it were absent.
		case name == "name" && single:
			k.Name = value.Value
		case name == "key_sha256" && single:
			k.KeySHA256 = value.Value
		case f.grant(&k, name, value):
		case name == "expires_at" && single:
			at, err := time.Parse(time.RFC3339, value.Value)
			if err != nil {
				f.mistake("%s: expires_at is %q: it must be a time of RFC 3339, as 2027-01-31T12:00:00Z", f.at(value), value.Value)
			}
			k.ExpiresAt = at
		case slices.Contains(keyFields[:], name):
			f.mistake("%s: %s of a key is of the wrong kind", f.at(value), name)
		default:
			f.mistake("%s: %s", f.at(field), unknown("field of a key", name, keyFields[:]))
		}
	})
	return k
}

// grant sets the field of that name if it is one that keys and roles of groups have in common, and of the right kind.
func (f *fileReader) grant(k *Key, name string, value *yaml.Node) (ok bool) {
	single, several := value.Kind == yaml.ScalarNode, value.Kind == yaml.SequenceNode
	switch {
	case name == "role" && single:
		k.Role = value.Value
	case name == "roles" && several:
		k.Roles, _ = f.texts("roles", value)
		if len(value.Content) == 0 {
			f.mistake("%s: roles has none: it must have one or more of reader, producer, worker and operator", f.at(value))
		}
	case name == "rate_limit_per_minute" && single:
		n, err := strconv.ParseInt(value.Value, 10, 64)
		if err != nil {
			f.mistake("%s: rate_limit_per_minute is %q: it must be a whole number", f.at(value), value.Value)
		}
		k.RateLimitPerMinute = &n
	case name == "task_types" && several:
		k.TaskTypes = f.bounding("task_types", value)
	case name == "addresses" && several:
		k.Addresses = f.addresses(f.bounding("addresses", value), f.at(value))
	default:
		return false
	}
	return true
}

// bounding returns the elements of a list that restricts a key. An empty list is a mistake, because it would lift the
// restriction.
func (f *fileReader) bounding(name string, sequence *yaml.Node) []string {
	if len(sequence.Content) == 0 {
		f.mistake("%s: %s has none: leave it out for all of them", f.at(sequence), name)
	}
	texts, _ := f.texts(name, sequence)
	return texts
}

var keyFields = [...]string{"name", "role", "roles", "key_sha256", "rate_limit_per_minute", "task_types", "expires_at", "addresses"}

// validateKeys records mistakes in keys, never with a whole hash.
func (s *Server) validateKeys(add func(string, ...any)) {
	names := make(map[string]bool, len(s.Keys))
	hashes := make(map[string]string, len(s.Keys))
	for i := range s.Keys {
		k := &s.Keys[i]
		which := fmt.Sprintf("keys: key %d (%q)", i+1, k.Name)
		if !nodeIDPattern.MatchString(k.Name) {
			add("%s: its name must be 1 to 64 of A-Z a-z 0-9 _ . -", which)
		} else if names[k.Name] {
			add("%s: its name is there twice", which)
		}
		names[k.Name] = true
		k.validateGrant(add, which)
		if !keyHashPattern.MatchString(k.KeySHA256) {
			add("%s: its key_sha256 must be the 64 lower-case hex digits of a SHA-256: never the key itself", which)
		} else if other, ok := hashes[k.KeySHA256]; ok {
			add("%s: its key_sha256 is also that of %q", which, other)
		}
		hashes[k.KeySHA256] = k.Name
	}
}

// validateGrant records mistakes in the rights of a key or of a group's role.
func (k *Key) validateGrant(add func(string, ...any), which string) {
	validateKeyRoles(add, which, k)
	if r := k.RateLimitPerMinute; r != nil && (*r < 0 || *r > keyRateMax) {
		add("%s: its rate_limit_per_minute is %d: it must be 0 (no bound) or from 1 to %d", which, *r, keyRateMax)
	}
	validateKeyTypes(add, which, k.TaskTypes)
	if len(k.Addresses) > keyAddressesMax {
		add("%s: it has %d addresses: it may have %d", which, len(k.Addresses), keyAddressesMax)
	}
}

func validateKeyRoles(add func(string, ...any), which string, k *Key) {
	if k.Role != "" && len(k.Roles) > 0 {
		add("%s: it has role and roles: give one of them", which)
		return
	}
	for i, role := range k.AllRoles() {
		if !slices.Contains(keyRoles[:], role) {
			add("%s: its role is %q: it must be reader, producer, worker or operator", which, role)
		} else if slices.Contains(k.Roles[:min(i, len(k.Roles))], role) {
			add("%s: its roles have %q twice", which, role)
		}
	}
}

// AllRoles returns the key's roles, whether it has Role or Roles.
func (k *Key) AllRoles() []string {
	if len(k.Roles) > 0 {
		return k.Roles
	}
	return []string{k.Role}
}

func validateKeyTypes(add func(string, ...any), which string, types []string) {
	if len(types) > keyTypesMax {
		add("%s: it has %d task_types: it may have %d", which, len(types), keyTypesMax)
		return
	}
	for _, t := range types {
		if !taskTypePattern.MatchString(t) || t == "." || t == ".." {
			add("%s: its task_types have %q: a type is 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or ..", which, t)
		}
	}
}

// ParseAddress parses an address (192.0.2.7, ::1) or a prefix (10.0.0.0/8). A single address becomes a prefix of its
// full length.
func ParseAddress(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no address: it must be as 192.0.2.7 or ::1, or a prefix as 10.0.0.0/8", text)
		}
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is no prefix: it must be as 10.0.0.0/8 or 2001:db8::/32", text)
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is a prefix of IPv4 written as one of IPv6: write it as 10.0.0.0/8", text)
	case prefix.Masked() != prefix:
		return netip.Prefix{}, fmt.Errorf("%q has bits behind its prefix: %s is probably meant", text, prefix.Masked())
	}
	return prefix, nil
}

// FormatAddress formats a prefix for ParseAddress, a single address without its length.
func FormatAddress(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// addresses parses the addresses of a key.
func (f *fileReader) addresses(texts []string, at string) []netip.Prefix {
	var all []netip.Prefix
	for i, text := range texts {
		p, err := ParseAddress(text)
		if err != nil {
			f.mistake("%s: addresses[%d] %w", at, i, err)
			continue
		}
		all = append(all, p)
	}
	return all
}
