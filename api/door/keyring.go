package door

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/oidc"
)

// Bounds of the keys of a server.
const (
	KeysMax = 10_000 // keys at once
	// KeyBytesMax bounds a key as sent.
	KeyBytesMax = 256
	// typesBytes bounds the task types of one key, with a comma after each, because each call of the key goes through
	// them.
	typesBytes = 2 << 10
	// KeyAddressesMax bounds the addresses of one key, for the same reason.
	KeyAddressesMax = 64
	// KeyRateMax bounds a rate_limit_per_minute.
	KeyRateMax = 1_000_000_000
	// rateDefault is the rate per minute of a key without one.
	rateDefault = 100
)

// KeyPrefix is the beginning of keys that claimq makes. Other keys may begin otherwise.
const KeyPrefix = "claimq_"

// Key is a configured API key; the key itself is not stored.
type Key struct {
	// Field is its path in the configuration, such as keys[2]; errors begin with it.
	Field string
	// Name is shown in the trail and in metrics: 1 to 64 of A-Z a-z 0-9 _ . -.
	Name string
	// Role is reader, producer, worker or operator. Roles can be given instead: the key may do what any of them may.
	Role  string
	Roles []string
	// SHA256 is the SHA-256 of the whole key in 64 hex digits.
	SHA256 string
	// AccessKeyID and Secret make it a credential that signs requests, in place of a key that is sent. It has no
	// SHA256, and no rate unless it is given one.
	AccessKeyID, Secret string
	// RateLimitPerMinute bounds its requests per minute, and also how many may come at once; nil: 100, 0: no bound.
	RateLimitPerMinute *int64
	// TaskTypes are the types that it may submit, claim, change and see; empty: all.
	TaskTypes []string
	// ExpiresAt is the key's expiry, by the clock of the node that it reaches and of the leader; zero: never.
	ExpiresAt time.Time
	// Addresses are those that it may be used from; empty: all.
	Addresses []netip.Prefix
}

// CheckKeys returns all mistakes in keys, each naming the field, or nil. Errors never repeat a hash, because someone may
// have put the key itself there.
func CheckKeys(keys []Key) error {
	_, err := NewKeyring(keys, nil)
	return err
}

// Caller is a key as the server uses it, or the rights of a token.
type Caller struct {
	Name      string
	Roles     Roles
	Sum       [sha256.Size]byte // of the key, or of the token's subject
	Types     []string          // sorted; empty: all
	Expires   time.Time         // zero: never
	Addresses []netip.Prefix    // empty: all
	Bucket    *bucket           // nil: no bound
	Refused   *atomic.Uint64
	Last      atomic.Pointer[KeyUse] // nil: not since the server started
	token     *tokenUse              // nil: it is a key
	secret    string                 // of a credential
}

// Keyring holds the keys of a server. It is never changed: a reload makes a new one.
type Keyring struct {
	// byHash finds a key by a hash of its SHA-256 with a secret seed, so that the time of a lookup reveals nothing
	// about the keys.
	seed   maphash.Seed
	byHash map[uint64]*Caller
	signs  map[string]*Caller // credentials by their access key ids
	Sorted []*Caller          // by name
	Tokens *TokenRing         // nil: no tokens are accepted
}

// KeyNamePattern matches valid names of keys.
var KeyNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// NewKeyring makes a Keyring. Keys that also exist in before keep what they have used of their rate. All mistakes are
// returned together.
func NewKeyring(keys []Key, before *Keyring) (*Keyring, error) {
	if len(keys) > KeysMax {
		return nil, fmt.Errorf("there are %d keys: at most %d are allowed", len(keys), KeysMax)
	}
	t := &Keyring{seed: maphash.MakeSeed(), byHash: make(map[uint64]*Caller, len(keys)), signs: make(map[string]*Caller)}
	names, sums := map[string]string{}, map[[sha256.Size]byte]string{}
	var errs []error
	for i := range keys {
		c := &keys[i]
		k, err := newCaller(c)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, ok := names[k.Name]; ok {
			errs = append(errs, fmt.Errorf("%s.name is %q, the name of %s too: each key has its own", c.Field, k.Name, other))
			continue
		}
		if c.AccessKeyID != "" {
			if t.signs[c.AccessKeyID] != nil {
				errs = append(errs, fmt.Errorf("%s.access_key_id is there twice: each credential has its own", c.Field))
				continue
			}
			t.signs[c.AccessKeyID] = k
		}
		if other, ok := sums[k.Sum]; ok {
			errs = append(errs, fmt.Errorf("%s.key_sha256 is the same as in %s: each key needs a different one", c.Field, other))
			continue
		}
		names[k.Name], sums[k.Sum] = c.Field, c.Field
		k.inherit(before)
		for t.byHash[t.hash(&k.Sum)] != nil { // a collision of 64-bit hashes; another seed avoids it
			t.reseed()
		}
		t.byHash[t.hash(&k.Sum)] = k
		t.Sorted = append(t.Sorted, k)
	}
	slices.SortFunc(t.Sorted, func(a, b *Caller) int { return strings.Compare(a.Name, b.Name) })
	return t, errors.Join(errs...)
}

func newCaller(c *Key) (*Caller, error) {
	var errs []error
	add := adder(c, &errs)
	k := &Caller{Name: c.Name, Expires: c.ExpiresAt, Refused: new(atomic.Uint64)}
	if !KeyNamePattern.MatchString(c.Name) {
		add("name", "is %q: it must be 1 to 64 of A-Z a-z 0-9 _ . -", jsonout.Shorten(c.Name))
	}
	if c.AccessKeyID != "" {
		k.setCredential(c, add)
		k.grant(c, &errs)
		return k, errors.Join(errs...)
	}
	if n, err := hex.Decode(k.Sum[:], []byte(c.SHA256[:min(len(c.SHA256), 2*sha256.Size)])); err != nil || n != sha256.Size || len(c.SHA256) != 2*sha256.Size {
		add("key_sha256", "is not the SHA-256 of a key: it must be 64 hex digits, as claimq key generate prints them (its value is not shown: it may be the key itself)")
	}
	k.grant(c, &errs)
	return k, errors.Join(errs...)
}

// Bounds of credentials.
const (
	secretMin = 16
	secretMax = 256
)

var accessKeyPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,128}$`)

// setCredential makes the key a credential, which signs requests. Its Sum is the hash of a text that no client can send
// as a key.
func (k *Caller) setCredential(c *Key, add func(field, format string, args ...any)) {
	if !accessKeyPattern.MatchString(c.AccessKeyID) {
		add("access_key_id", "is %q: it must be 3 to 128 of A-Z a-z 0-9 _ . -", jsonout.Shorten(c.AccessKeyID))
	}
	if n := len(c.Secret); n < secretMin || n > secretMax || !ValidKeyText([]byte(c.Secret)) {
		add("secret", "must be %d to %d printable characters of ASCII without spaces (it is not shown)", secretMin, secretMax)
	}
	k.secret = c.Secret
	k.Sum = sha256.Sum256([]byte("credential\x00" + c.AccessKeyID + "\x00" + c.Secret))
}

// Signer returns the credential with that access key id, and its secret; nil if it is unknown.
func (t *Keyring) Signer(accessKeyID string) (k *Caller, secret string) {
	if t == nil {
		return nil, ""
	}
	if k = t.signs[accessKeyID]; k != nil {
		secret = k.secret
	}
	return k, secret
}

// adder returns a function that adds a mistake in a field of c to errs.
func adder(c *Key, errs *[]error) func(field, format string, args ...any) {
	return func(field, format string, args ...any) {
		*errs = append(*errs, fmt.Errorf(c.Field+"."+field+" "+format, args...))
	}
}

// grant sets the key's rights and rate.
func (k *Caller) grant(c *Key, errs *[]error) {
	add := adder(c, errs)
	k.Addresses, k.Types = c.Addresses, slices.Compact(slices.Sorted(slices.Values(c.TaskTypes)))
	k.setRoles(c, add)
	rate := int64(rateDefault)
	if c.AccessKeyID != "" {
		rate = 0
	}
	if c.RateLimitPerMinute != nil {
		rate = *c.RateLimitPerMinute
	}
	if rate < 0 || rate > KeyRateMax {
		add("rate_limit_per_minute", "is %d: it must be 0 (no limit) or a number of requests up to %d", rate, KeyRateMax)
	} else if rate > 0 {
		k.Bucket = newBucket(rate)
	}
	size := 0
	for i, t := range c.TaskTypes {
		size += len(t) + 1
		if !wire.ValidTaskType(t) {
			add("task_types["+fmt.Sprint(i)+"]", "is %q: it must be %s", jsonout.Shorten(t), wire.TaskTypeAllowed)
		}
	}
	if size > typesBytes {
		add("task_types", "are %d bytes together, with a comma after each: at most %d are allowed", size, typesBytes)
	}
	if len(c.Addresses) > KeyAddressesMax {
		add("addresses", "are %d: at most %d are allowed", len(c.Addresses), KeyAddressesMax)
	}
}

func (k *Caller) setRoles(c *Key, add func(field, format string, args ...any)) {
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
		case k.Roles.Has(r):
			add(field(i), "is %q, which is there already", name)
		default:
			k.Roles |= 1 << r
		}
	}
}

// inherit copies the used rate, the refusals and the last use of the key with the same hash.
func (k *Caller) inherit(before *Keyring) {
	if before == nil {
		return
	}
	old := before.find(&k.Sum)
	if old == nil {
		return
	}
	k.Last.Store(old.Last.Load())
	if old.Name == k.Name {
		k.Refused = old.Refused
	}
	if k.Bucket != nil && k.Rate() == old.Rate() {
		k.Bucket = old.Bucket
	}
}

// Expired reports whether the key has expired.
func (k *Caller) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// Bars refuses a key that is not valid now or from that address; bad is nil if it is valid.
func (k *Caller) Bars(now time.Time, from netip.Addr) (why Failure, bad *refuse.Refusal) {
	switch {
	case k.Expired(now) && k.token != nil:
		return BadToken(oidc.ErrExpired)
	case k.Expired(now):
		return FailExpired, refuse.New(wire.CodeUnauthorized, "The API key expired at "+k.Expires.UTC().Format(time.RFC3339),
			"Use another key: an operator makes one with 'claimq key generate'")
	case k.Roles == 0:
		return FailRole, refuse.New(wire.CodeForbidden, "The token has no group that has a role here",
			"Have "+k.Name+" made a member of a group that oidc.roles names, or have that name a group of theirs")
	case !k.admits(from):
		return failAddress, refuseSource(k, from)
	}
	return 0, nil
}

// Same reports whether two Rings have the same keys.
func (t *Keyring) Same(before *Keyring) bool {
	return before != nil && t.Tokens.same(before.Tokens) && slices.EqualFunc(t.Sorted, before.Sorted, func(a, b *Caller) bool {
		return a.Name == b.Name && a.Roles == b.Roles && a.Sum == b.Sum && slices.Equal(a.Types, b.Types) && a.Rate() == b.Rate() && a.Expires.Equal(b.Expires) && slices.Equal(a.Addresses, b.Addresses)
	})
}

// Rate returns the key's requests per minute, 0 = unlimited.
func (k *Caller) Rate() int64 {
	if k.Bucket == nil {
		return 0
	}
	return k.Bucket.PerMinute
}

func (t *Keyring) hash(sum *[sha256.Size]byte) uint64 { return maphash.Bytes(t.seed, sum[:]) }

func (t *Keyring) reseed() {
	t.seed = maphash.MakeSeed()
	clear(t.byHash)
	for _, k := range t.Sorted {
		t.byHash[t.hash(&k.Sum)] = k
	}
}

// find returns the key with that SHA-256, or nil. The comparison takes constant time.
func (t *Keyring) find(sum *[sha256.Size]byte) *Caller {
	k := t.byHash[t.hash(sum)]
	if k == nil || subtle.ConstantTimeCompare(k.Sum[:], sum[:]) != 1 {
		return nil
	}
	return k
}

// FindText returns the key that was sent as text, nil if it is unknown.
func (t *Keyring) FindText(text []byte) *Caller {
	sum := sha256.Sum256(text)
	return t.find(&sum)
}

// Named returns the key of that name, or nil. Callers by token cannot be found by name.
func (t *Keyring) Named(name string) *Caller {
	at, ok := slices.BinarySearchFunc(t.Sorted, name, func(k *Caller, name string) int { return strings.Compare(k.Name, name) })
	if !ok {
		return nil
	}
	return t.Sorted[at]
}

// ValidKeyText reports whether text can be a key (1 to 256 bytes of printable ASCII without spaces) or a token (the
// same, up to 8 KiB).
func ValidKeyText(key []byte) bool {
	if len(key) == 0 || len(key) > KeyBytesMax && (len(key) > oidc.TokenBytesMax || !oidc.IsToken(key)) {
		return false
	}
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Again checks the caller of a long request again. bad is nil if it may continue, until expires (zero: without end).
// t may be nil: then no key is known.
func (t *Keyring) Again(who *Caller, from netip.Addr, now time.Time) (expires time.Time, why Failure, bad *refuse.Refusal) {
	var k *Caller
	switch {
	case t == nil:
	case who.token == nil:
		k = t.find(&who.Sum)
	case t.Tokens != nil:
		var err error
		if k, err = t.Tokens.again(who, now); err != nil {
			why, bad = BadToken(err)
			return expires, why, bad
		}
	}
	if k == nil || k.Roles != who.Roles || !slices.Equal(k.Types, who.Types) {
		return expires, FailUnknown, Unauthorized("The API key is known no more, or is for something else")
	}
	why, bad = k.Bars(now, from)
	return k.Expires, why, bad
}

// KeyUse is the time and address of a key's use.
type KeyUse struct {
	At   time.Time
	From netip.Addr // zero value: unknown
}

// Used records that the key was used.
func (k *Caller) Used(now time.Time, from netip.Addr) {
	last := k.Last.Load()
	if last == nil || now.Sub(last.At) >= KeyUseInterval {
		k.Last.CompareAndSwap(last, &KeyUse{now, from})
	}
}

// KeyUseInterval is the precision of a key's last use, because recording every use would slow down every request.
const KeyUseInterval = time.Second

// SourceOf returns the remote address of a connection; an IPv4 address is returned as such.
func SourceOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// admits reports whether the key may be used from an address.
func (k *Caller) admits(from netip.Addr) bool {
	return len(k.Addresses) == 0 || slices.ContainsFunc(k.Addresses, func(p netip.Prefix) bool { return p.Contains(from) })
}

// refuseSource refuses a key that may not be used from the address.
func refuseSource(k *Caller, from netip.Addr) *refuse.Refusal {
	where := "from " + from.String()
	if !from.IsValid() {
		where = "from an address that this node does not know"
	}
	what := "API key"
	if k.token != nil {
		what = "token"
	}
	return refuse.New(wire.CodeForbidden, "This "+what+" may not be used "+where,
		"Use it from one of its addresses: behind a proxy, the proxy's address counts")
}
