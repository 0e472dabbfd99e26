package keyring

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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

// TokenRole is what the members of a group may do, as a Key does whose Field is as
// oidc.roles[2]. Name, SHA256 and ExpiresAt are of no meaning.
type TokenRole struct {
	// Group is a value of GroupsClaim: 1 to 256 bytes.
	Group string
	Key
}

// TokenRing is how tokens become keys. But for what it keeps it is never changed: a reload
// makes a new one.
type TokenRing struct {
	cfg     *Tokens
	Issuer  *oidc.Issuer
	grants  []*Caller        // as cfg.Roles, without names
	checked *recent[*Caller] // by the SHA-256 of the token
	buckets *recent[*bucket] // by the subject and what its rate is
	Refused *atomic.Uint64   // requests over a subject's rate, of all of them
}

// tokenUse is what a key that was made of a token has of it.
type tokenUse struct {
	issuer *oidc.Issuer // that found it good
	claim  string       // that the groups are of
	groups []string
	signer oidc.SignerID
}

// NewTokens makes the table, and begins to fetch the issuer's keys unless before does.
// All mistakes are returned at once.
func NewTokens(cfg *Tokens, before *TokenRing) (*TokenRing, error) {
	if len(cfg.Roles) > tokenRolesMax {
		return nil, fmt.Errorf("there are %d oidc.roles: at most %d are allowed", len(cfg.Roles), tokenRolesMax)
	}
	t := &TokenRing{cfg: cfg, checked: newRecent[*Caller](tokensKept)}
	var errs []error
	for i := range cfg.Roles {
		c := &cfg.Roles[i]
		if c.Group == "" || len(c.Group) > groupBytesMax {
			errs = append(errs, fmt.Errorf("%s.group is %q: it must be 1 to %d bytes", c.Field, jsonout.Shorten(c.Group), groupBytesMax))
		}
		k := &Caller{}
		k.grant(&c.Key, &errs)
		t.grants = append(t.grants, k)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if before != nil && before.Issuer.Serves(&cfg.Issuer) {
		t.Issuer = before.Issuer
	} else {
		issuer, err := oidc.Open(cfg.Issuer)
		if err != nil {
			return nil, err
		}
		t.Issuer = issuer
	}
	if before != nil {
		t.buckets, t.Refused = before.buckets, before.Refused
	} else {
		t.buckets, t.Refused = newRecent[*bucket](subjectsKept), new(atomic.Uint64)
	}
	return t, nil
}

// Close ends the fetching of the issuer's keys unless then goes on with it.
func (t *TokenRing) Close(then *TokenRing) {
	if t != nil && (then == nil || then.Issuer != t.Issuer) {
		t.Issuer.Close()
	}
}

// same reports whether two tables make the same of each token.
func (t *TokenRing) same(other *TokenRing) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.Issuer == other.Issuer && t.cfg.GroupsClaim == other.cfg.GroupsClaim && t.cfg.NameClaim == other.cfg.NameClaim &&
		slices.EqualFunc(t.cfg.Roles, other.cfg.Roles, func(a, b TokenRole) bool { return a.Group == b.Group }) &&
		slices.EqualFunc(t.grants, other.grants, func(a, b *Caller) bool {
			return a.Roles == b.Roles && a.Rate() == b.Rate() && a.alike(b)
		})
}

// Find returns the key that a token stands for, or why it stands for none.
func (t *TokenRing) Find(token []byte, now time.Time) (*Caller, error) {
	sum := sha256.Sum256(token)
	if k, ok := t.checked.get(&sum); ok && t.Issuer.Trusts(k.token.signer, now) == nil {
		return k, nil
	}
	claims, err := t.Issuer.Check(token, now)
	if err != nil {
		return nil, err
	}
	name := claims.Texts(t.cfg.NameClaim)
	if len(name) != 1 || name[0] == "" {
		return nil, errNoName
	}
	k := t.grantOf(claims.Texts(t.cfg.GroupsClaim))
	k.Name, k.Expires = subjectName(name[0]), claims.ExpiresAt.Add(t.cfg.Issuer.Leeway)
	k.Sum = sha256.Sum256([]byte("oidc\x00" + t.cfg.Issuer.URL + "\x00" + claims.Subject))
	k.token.signer = claims.Signer
	if rate := k.Rate(); rate > 0 {
		of := sha256.Sum256(fmt.Appendf(k.Sum[:len(k.Sum):len(k.Sum)], "%d", rate))
		k.Bucket = t.buckets.keep(&of, func() *bucket { return newBucket(rate) })
	}
	t.checked.put(&sum, k)
	return k, nil
}

// errNoName is returned for a token without the claim that its subject is named by.
var errNoName = errors.New("the token has no name")

// grantOf returns a key with what groups may do, without roles if that is nothing.
func (t *TokenRing) grantOf(groups []string) *Caller {
	k := &Caller{token: &tokenUse{issuer: t.Issuer, claim: t.cfg.GroupsClaim, groups: groups}, Refused: t.Refused}
	var first *Caller
	for i, g := range t.grants {
		switch {
		case !slices.Contains(groups, t.cfg.Roles[i].Group):
		case first == nil:
			first = g
			k.Roles, k.Types, k.Addresses, k.Bucket = g.Roles, g.Types, g.Addresses, g.Bucket
		case g.alike(first):
			k.Roles |= g.Roles
		}
	}
	return k
}

// alike reports whether two are for the same task types and addresses.
func (k *Caller) alike(other *Caller) bool {
	return slices.Equal(k.Types, other.Types) && slices.Equal(k.Addresses, other.Addresses)
}

// again returns what the key of a token is now: nil if its token is taken no more, or that
// is not known.
func (t *TokenRing) again(k *Caller, now time.Time) (*Caller, error) {
	switch {
	case k.token.issuer != t.Issuer: // other settings found it good: it has to be asked again
		return nil, oidc.ErrNoKeys
	case k.token.claim != t.cfg.GroupsClaim:
		return nil, nil
	}
	if err := t.Issuer.Trusts(k.token.signer, now); err != nil {
		return nil, err
	}
	is := t.grantOf(k.token.groups)
	is.Name, is.Sum, is.Expires = k.Name, k.Sum, k.Expires
	return is, nil
}

// subjectName is the name of a subject in the trail, the log and answers. What no key's
// name may have is replaced; such a name, and one that is too long, ends in a part of its
// hash behind a ~, which no other name has: so two subjects have two names.
func subjectName(text string) string {
	clean := strings.Map(func(c rune) rune {
		if c < 0x80 && (NamePattern.MatchString(string(c)) || c == '@') {
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
