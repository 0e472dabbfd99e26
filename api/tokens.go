package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/internal/oidc"
)

// A token of the issuer stands for a key: what it may do comes from the groups that it
// names, and from then on nothing tells the two apart. Whoever it is about is its subject:
// rates and shares are a subject's, whatever tokens it comes with.

const (
	// tokenRolesMax bounds the roles that groups have.
	tokenRolesMax = 1_000
	// groupBytesMax bounds the name of a group.
	groupBytesMax = 256
	// tokensKept bounds the tokens that need not be checked again.
	tokensKept = 4_096
	// subjectsKept bounds the subjects whose rate is remembered. One more, and the one
	// that was not seen for longest has all of its rate again.
	subjectsKept = 20_000
	// subjectPrefix is what the names of subjects begin with, and no key's does.
	subjectPrefix = "oidc:"
	// subjectNameMax bounds the rest of their names.
	subjectNameMax = 64
)

// Tokens says of whom tokens are taken beside keys, and what they are good for.
type Tokens struct {
	// Issuer is whose they are, and which are good. Its Logger is the server's.
	Issuer oidc.Config
	// GroupsClaim is the claim that has the groups, NameClaim the one that has the name
	// for the trail; with dots through objects.
	GroupsClaim, NameClaim string
	// Roles are what groups may do: the first one decides that a token has the group of,
	// with the roles of those behind it that have the same task types and addresses.
	Roles []TokenRole
}

// TokenRole is what the members of a group may do. Its fields are those of a Key.
type TokenRole struct {
	Field string // as oidc.roles[2]
	// Group is a value of GroupsClaim: 1 to 256 bytes.
	Group              string
	Role               string
	Roles              []string
	RateLimitPerMinute *int64
	TaskTypes          []string
	Addresses          []netip.Prefix
}

// tokenTable is how tokens become keys. But for what it keeps it is never changed: a reload
// makes a new one.
type tokenTable struct {
	cfg     *Tokens
	issuer  *oidc.Issuer
	grants  []*apiKey        // as cfg.Roles, without names
	checked *recent[*apiKey] // by the SHA-256 of the token
	buckets *recent[*bucket] // by the subject and what its rate is
	refused *atomic.Uint64   // requests over a subject's rate, of all of them
}

// tokenUse is what a key that was made of a token has of it.
type tokenUse struct {
	issuer *oidc.Issuer // that found it good
	claim  string       // that the groups are of
	groups []string
	signer oidc.SignerID
}

// newTokenTable makes the table, and begins to fetch the issuer's keys unless before does.
// All mistakes are returned at once.
func newTokenTable(cfg *Tokens, before *tokenTable) (*tokenTable, error) {
	if len(cfg.Roles) > tokenRolesMax {
		return nil, fmt.Errorf("there are %d oidc.roles: at most %d are allowed", len(cfg.Roles), tokenRolesMax)
	}
	t := &tokenTable{cfg: cfg, checked: newRecent[*apiKey](tokensKept)}
	var errs []error
	for i := range cfg.Roles {
		c := &cfg.Roles[i]
		if c.Group == "" || len(c.Group) > groupBytesMax {
			errs = append(errs, fmt.Errorf("%s.group is %q: it must be 1 to %d bytes", c.Field, jsonout.Shorten(c.Group), groupBytesMax))
		}
		k := &apiKey{}
		k.grant(&Key{Field: c.Field, Role: c.Role, Roles: c.Roles, RateLimitPerMinute: c.RateLimitPerMinute, TaskTypes: c.TaskTypes, Addresses: c.Addresses}, &errs)
		t.grants = append(t.grants, k)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if before != nil && before.issuer.Serves(&cfg.Issuer) {
		t.issuer = before.issuer
	} else {
		issuer, err := oidc.Open(cfg.Issuer)
		if err != nil {
			return nil, err
		}
		t.issuer = issuer
	}
	if before != nil {
		t.buckets, t.refused = before.buckets, before.refused
	} else {
		t.buckets, t.refused = newRecent[*bucket](subjectsKept), new(atomic.Uint64)
	}
	return t, nil
}

// close ends the fetching of the issuer's keys unless then goes on with it.
func (t *tokenTable) close(then *tokenTable) {
	if t != nil && (then == nil || then.issuer != t.issuer) {
		t.issuer.Close()
	}
}

// same reports whether two tables make the same of each token.
func (t *tokenTable) same(other *tokenTable) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.issuer == other.issuer && t.cfg.GroupsClaim == other.cfg.GroupsClaim && t.cfg.NameClaim == other.cfg.NameClaim &&
		slices.EqualFunc(t.cfg.Roles, other.cfg.Roles, func(a, b TokenRole) bool { return a.Group == b.Group }) &&
		slices.EqualFunc(t.grants, other.grants, func(a, b *apiKey) bool {
			return a.roles == b.roles && a.rate() == b.rate() && a.alike(b)
		})
}

// find returns the key that a token stands for, or why it stands for none.
func (t *tokenTable) find(token []byte, now time.Time) (*apiKey, error) {
	sum := sha256.Sum256(token)
	if k, ok := t.checked.get(&sum); ok && t.issuer.Trusts(k.token.signer, now) == nil {
		return k, nil
	}
	claims, err := t.issuer.Check(token, now)
	if err != nil {
		return nil, err
	}
	name := claims.Texts(t.cfg.NameClaim)
	if len(name) != 1 || name[0] == "" {
		return nil, errNoName
	}
	k := t.grantOf(claims.Texts(t.cfg.GroupsClaim))
	k.name, k.expires = subjectName(name[0]), claims.ExpiresAt.Add(t.cfg.Issuer.Leeway)
	k.sum = sha256.Sum256([]byte("oidc\x00" + t.cfg.Issuer.URL + "\x00" + claims.Subject))
	k.token.signer = claims.Signer
	if rate := k.rate(); rate > 0 {
		of := sha256.Sum256(fmt.Appendf(k.sum[:len(k.sum):len(k.sum)], "%d", rate))
		k.bucket = t.buckets.keep(&of, func() *bucket { return newBucket(rate) })
	}
	t.checked.put(&sum, k)
	return k, nil
}

// errNoName is returned for a token without the claim that its subject is named by.
var errNoName = errors.New("the token has no name")

// grantOf returns a key with what groups may do, without roles if that is nothing.
func (t *tokenTable) grantOf(groups []string) *apiKey {
	k := &apiKey{token: &tokenUse{issuer: t.issuer, claim: t.cfg.GroupsClaim, groups: groups}, refused: t.refused}
	var first *apiKey
	for i, g := range t.grants {
		switch {
		case !slices.Contains(groups, t.cfg.Roles[i].Group):
		case first == nil:
			first = g
			k.roles, k.types, k.addresses, k.bucket = g.roles, g.types, g.addresses, g.bucket
		case g.alike(first):
			k.roles |= g.roles
		}
	}
	return k
}

// alike reports whether two are for the same task types and addresses.
func (k *apiKey) alike(other *apiKey) bool {
	return slices.Equal(k.types, other.types) && slices.Equal(k.addresses, other.addresses)
}

// again returns what the key of a token is now: nil if its token is taken no more, or that
// is not known.
func (t *tokenTable) again(k *apiKey, now time.Time) (*apiKey, error) {
	switch {
	case k.token.issuer != t.issuer: // other settings found it good: it has to be asked again
		return nil, oidc.ErrNoKeys
	case k.token.claim != t.cfg.GroupsClaim:
		return nil, nil
	}
	if err := t.issuer.Trusts(k.token.signer, now); err != nil {
		return nil, err
	}
	is := t.grantOf(k.token.groups)
	is.name, is.sum, is.expires = k.name, k.sum, k.expires
	return is, nil
}

// subjectName is the name of a subject in the trail, the log and answers. What no key's
// name may have is replaced; such a name, and one that is too long, ends in a part of its
// hash behind a ~, which no other name has: so two subjects have two names.
func subjectName(text string) string {
	clean := strings.Map(func(c rune) rune {
		if c < 0x80 && (keyNamePattern.MatchString(string(c)) || c == '@') {
			return c
		}
		return '_'
	}, text)
	if clean != text || len(text) > subjectNameMax {
		sum := sha256.Sum256([]byte(text))
		mark := "~" + hex.EncodeToString(sum[:8])
		clean = clean[:min(len(clean), subjectNameMax-len(mark))] + mark
	}
	return subjectPrefix + clean
}
