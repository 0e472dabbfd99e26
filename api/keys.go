package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/oidc"
)

// The bounds of the keys of a server.
const (
	keysMax = 10_000 // keys at once
	// keyBytesMax bounds a key as it is sent.
	keyBytesMax = 256
	// keyTypesBytes bounds the task types of one key, with a comma after each:
	// each call of the key goes through them.
	keyTypesBytes = 2 << 10
	// keyAddressesMax bounds the addresses of one key, for the same reason.
	keyAddressesMax = 64
	// keyRateMax bounds a rate_limit_per_minute.
	keyRateMax = 1_000_000_000
	// keyRateDefault is how many requests a minute a key may make that sets
	// nothing.
	keyRateDefault = 100
)

// KeyPrefix is what keys begin with that claimq makes. Others may begin otherwise.
const KeyPrefix = "claimq_"

// Key is an API key as it is configured: the key itself is nowhere.
type Key struct {
	// Field says where it stands in the configuration, as keys[2]: errors begin
	// with it.
	Field string
	// Name is told in the trail and in metrics: 1 to 64 of A-Z a-z 0-9 _ . -.
	Name string
	// Role is reader, producer, worker or operator. Roles are several of them, in its
	// place: the key may do what any of them may.
	Role  string
	Roles []string
	// SHA256 is the SHA-256 of the whole key in 64 hex digits.
	SHA256 string
	// RateLimitPerMinute bounds its requests, and is how many may come at once;
	// nil: 100, 0: no bound.
	RateLimitPerMinute *int64
	// TaskTypes are those that it may submit, claim, change and see; none: all.
	TaskTypes []string
	// ExpiresAt is from when on it is refused, by the clock of the node that it
	// reaches and of the leader; zero: never.
	ExpiresAt time.Time
	// Addresses are those that it may be used from; none: all.
	Addresses []netip.Prefix
}

// CheckKeys returns every mistake in keys, each naming the field, nil if there
// is none. No error repeats a hash: somebody may have put the key itself there.
func CheckKeys(keys []Key) error {
	_, err := newKeyTable(keys, nil)
	return err
}

// apiKey is a key as the server uses it, or what a token stands for.
type apiKey struct {
	name      string
	roles     roles
	sum       [sha256.Size]byte // of the key, or of whom the token is about
	types     []string          // sorted; none: all
	expires   time.Time         // zero: never
	addresses []netip.Prefix    // none: all
	bucket    *bucket           // nil: no bound
	refused   *atomic.Uint64
	last      atomic.Pointer[keyUse] // nil: not since the server began
	token     *tokenUse              // nil: it is a key
}

// keyTable is the keys of a server. It is never changed: a reload makes a new
// one.
type keyTable struct {
	// byHash finds a key by a hash of its SHA-256 that nobody outside can compute,
	// so that the time that a look-up takes tells nothing of the keys.
	seed   maphash.Seed
	byHash map[uint64]*apiKey
	sorted []*apiKey   // by name
	tokens *tokenTable // nil: none are taken
}

var keyNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// newKeyTable makes the table of keys. A key that before has too goes on with
// what it has used of its rate. All mistakes are returned at once.
func newKeyTable(keys []Key, before *keyTable) (*keyTable, error) {
	if len(keys) > keysMax {
		return nil, fmt.Errorf("there are %d keys: at most %d are allowed", len(keys), keysMax)
	}
	t := &keyTable{seed: maphash.MakeSeed(), byHash: make(map[uint64]*apiKey, len(keys))}
	names, sums := map[string]string{}, map[[sha256.Size]byte]string{}
	var errs []error
	for i := range keys {
		c := &keys[i]
		k, err := newAPIKey(c)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, ok := names[k.name]; ok {
			errs = append(errs, fmt.Errorf("%s.name is %q, the name of %s too: each key has its own", c.Field, k.name, other))
			continue
		}
		if other, ok := sums[k.sum]; ok {
			errs = append(errs, fmt.Errorf("%s.key_sha256 is that of %s too: each key has its own", c.Field, other))
			continue
		}
		names[k.name], sums[k.sum] = c.Field, c.Field
		k.inherit(before)
		for t.byHash[t.hash(&k.sum)] != nil { // two of 2^64: another seed parts them
			t.reseed()
		}
		t.byHash[t.hash(&k.sum)] = k
		t.sorted = append(t.sorted, k)
	}
	slices.SortFunc(t.sorted, func(a, b *apiKey) int { return strings.Compare(a.name, b.name) })
	return t, errors.Join(errs...)
}

func newAPIKey(c *Key) (*apiKey, error) {
	var errs []error
	add := adder(c, &errs)
	k := &apiKey{name: c.Name, expires: c.ExpiresAt, refused: new(atomic.Uint64)}
	if !keyNamePattern.MatchString(c.Name) {
		add("name", "is %q: it must be 1 to 64 of A-Z a-z 0-9 _ . -", jsonout.Shorten(c.Name))
	}
	if n, err := hex.Decode(k.sum[:], []byte(c.SHA256[:min(len(c.SHA256), 2*sha256.Size)])); err != nil || n != sha256.Size || len(c.SHA256) != 2*sha256.Size {
		add("key_sha256", "is not the SHA-256 of a key: it must be 64 hex digits, as claimq key generate prints them (its value is not shown: it may be the key itself)")
	}
	k.grant(c, &errs)
	return k, errors.Join(errs...)
}

// adder returns a function that adds a mistake in a field of c to errs.
func adder(c *Key, errs *[]error) func(field, format string, args ...any) {
	return func(field, format string, args ...any) {
		*errs = append(*errs, fmt.Errorf(c.Field+"."+field+" "+format, args...))
	}
}

// grant sets what the key may do, and how often.
func (k *apiKey) grant(c *Key, errs *[]error) {
	add := adder(c, errs)
	k.addresses, k.types = c.Addresses, slices.Compact(slices.Sorted(slices.Values(c.TaskTypes)))
	k.setRoles(c, add)
	rate := int64(keyRateDefault)
	if c.RateLimitPerMinute != nil {
		rate = *c.RateLimitPerMinute
	}
	if rate < 0 || rate > keyRateMax {
		add("rate_limit_per_minute", "is %d: it must be 0 (no limit) or a number of requests up to %d", rate, keyRateMax)
	} else if rate > 0 {
		k.bucket = newBucket(rate)
	}
	size := 0
	for i, t := range c.TaskTypes {
		size += len(t) + 1
		if !bound.ValidTaskType(t) {
			add("task_types["+fmt.Sprint(i)+"]", "is %q: it must be %s", jsonout.Shorten(t), bound.TaskTypeAllowed)
		}
	}
	if size > keyTypesBytes {
		add("task_types", "are %d bytes together, with a comma after each: at most %d are allowed", size, keyTypesBytes)
	}
	if len(c.Addresses) > keyAddressesMax {
		add("addresses", "are %d: at most %d are allowed", len(c.Addresses), keyAddressesMax)
	}
}

// setRoles sets what the key may do.
func (k *apiKey) setRoles(c *Key, add func(field, format string, args ...any)) {
	given, field := c.Roles, func(i int) string { return "roles[" + strconv.Itoa(i) + "]" }
	switch {
	case c.Role != "" && len(given) > 0:
		add("role", "and roles are both given: give one of them")
		return
	case len(given) == 0:
		given, field = []string{c.Role}, func(int) string { return "role" }
	}
	for i, name := range given {
		r, ok := parseRole(name)
		switch {
		case !ok:
			add(field(i), "is %q: it must be %s", jsonout.Shorten(name), rolesAllowed)
		case k.roles.has(r):
			add(field(i), "is %q, which is there already", name)
		default:
			k.roles |= 1 << r
		}
	}
}

// inherit takes over what the key with the same hash has used of its rate, how
// often it was refused and when it was used.
func (k *apiKey) inherit(before *keyTable) {
	if before == nil {
		return
	}
	old := before.find(&k.sum)
	if old == nil {
		return
	}
	k.last.Store(old.last.Load())
	if old.name == k.name {
		k.refused = old.refused
	}
	if k.bucket != nil && k.rate() == old.rate() {
		k.bucket = old.bucket
	}
}

// expired reports whether the key's time is over.
func (k *apiKey) expired(now time.Time) bool { return !k.expires.IsZero() && !now.Before(k.expires) }

// bars refuses a key that is of no use now or from there, nil if it is.
func (k *apiKey) bars(now time.Time, from netip.Addr) (why failure, bad *refuse.Refusal) {
	switch {
	case k.expired(now) && k.token != nil:
		return refuseToken(oidc.ErrExpired)
	case k.expired(now):
		return failExpired, &refuse.Refusal{
			Code: wire.CodeUnauthorized, Text: "The API key expired at " + k.expires.UTC().Format(time.RFC3339),
			Advice: "Use another key: an operator makes one with 'claimq key generate'",
		}
	case k.roles == 0:
		return failRole, &refuse.Refusal{
			Code: wire.CodeForbidden, Text: "The token has no group that has a role here",
			Advice: "Have " + k.name + " made a member of a group that oidc.roles names, or have that name a group of theirs",
		}
	case !k.admits(from):
		return failAddress, refuseSource(k, from)
	}
	return 0, nil
}

// same reports whether two tables have the same keys.
func (t *keyTable) same(before *keyTable) bool {
	return before != nil && t.tokens.same(before.tokens) && slices.EqualFunc(t.sorted, before.sorted, func(a, b *apiKey) bool {
		return a.name == b.name && a.roles == b.roles && a.sum == b.sum && slices.Equal(a.types, b.types) && a.rate() == b.rate() && a.expires.Equal(b.expires) && slices.Equal(a.addresses, b.addresses)
	})
}

// rate returns how many requests a minute the key may make, 0 = any number.
func (k *apiKey) rate() int64 {
	if k.bucket == nil {
		return 0
	}
	return k.bucket.perMinute
}

func (t *keyTable) hash(sum *[sha256.Size]byte) uint64 { return maphash.Bytes(t.seed, sum[:]) }

func (t *keyTable) reseed() {
	t.seed = maphash.MakeSeed()
	clear(t.byHash)
	for _, k := range t.sorted {
		t.byHash[t.hash(&k.sum)] = k
	}
}

// find returns the key with that SHA-256, nil if there is none. The comparison
// takes the same time wherever two hashes differ.
func (t *keyTable) find(sum *[sha256.Size]byte) *apiKey {
	k := t.byHash[t.hash(sum)]
	if k == nil || subtle.ConstantTimeCompare(k.sum[:], sum[:]) != 1 {
		return nil
	}
	return k
}

// findText returns the key that was sent as text, nil if it is unknown.
func (t *keyTable) findText(text []byte) *apiKey {
	sum := sha256.Sum256(text)
	return t.find(&sum)
}

// validKeyText reports whether what was sent can be a key, 1 to 256 bytes of ASCII that
// is printed, without spaces, or a token, of the same and of up to 8 KiB.
func validKeyText(key []byte) bool {
	if len(key) == 0 || len(key) > keyBytesMax && (len(key) > oidc.TokenBytesMax || !oidc.IsToken(key)) {
		return false
	}
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
