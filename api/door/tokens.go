package door

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
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/oidc"
	"github.com/claimq/claimq/nodes"
)

// A token of the issuer is treated like a key with the rights of the groups that it names. Rates and shares belong to
// the token's subject, whichever token it sends.

const (
	// tokenRolesMax bounds the configured roles of groups.
	tokenRolesMax = 1_000
	// groupBytesMax bounds the name of a group.
	groupBytesMax = 256
	// tokensKept bounds the tokens that need not be checked again.
	tokensKept = 4_096
	// subjectsKept bounds the subjects whose used rate is remembered. Beyond that, the one that was not seen for
	// longest gets its whole rate again.
	subjectsKept = 20_000
	// subjectPrefix is the beginning of the names of subjects; names of keys cannot have it.
	subjectPrefix = "oidc:"
	// subjectNameMax bounds the rest of their names.
	subjectNameMax = 64
)

// Tokens says which tokens are accepted in addition to keys, and what they permit.
type Tokens struct {
	// Issuer identifies the issuer and valid tokens. Its Logger is the server's.
	Issuer oidc.Config
	// GroupsClaim is the claim with the groups, NameClaim the one with the name for the trail; dots lead into
	// objects.
	GroupsClaim, NameClaim string
	// Roles are the rights of groups. The first role of one of the token's groups applies, plus the roles of later
	// ones with the same task types and addresses.
	Roles []TokenRole
}

// TokenRole holds the rights of a group's members, as a Key whose Field is like oidc.roles[2]. Name, SHA256 and
// ExpiresAt are ignored.
type TokenRole struct {
	// Group is a value of GroupsClaim: 1 to 256 bytes.
	Group string
	Key
}

// TokenRing maps tokens to callers. Except for its caches it is never changed: a reload makes a new one.
type TokenRing struct {
	cfg     *Tokens
	Issuer  *oidc.Issuer
	grants  []*Caller        // as cfg.Roles, without names
	checked *recent[*Caller] // by the SHA-256 of the token
	buckets *recent[*bucket] // by subject and rate
	Refused *atomic.Uint64   // requests over a subject's rate, of all subjects
}

// tokenUse is the part of a token that is kept for its caller.
type tokenUse struct {
	issuer *oidc.Issuer // that verified it
	claim  string       // the claim of the groups
	groups []string
	signer oidc.SignerID
}

// NewTokens makes a TokenRing, and starts fetching the issuer's keys unless before does already. All mistakes are
// returned together.
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

// Close stops fetching the issuer's keys, unless then continues with the same issuer.
func (t *TokenRing) Close(then *TokenRing) {
	if t != nil && (then == nil || then.Issuer != t.Issuer) {
		t.Issuer.Close()
	}
}

// same reports whether two TokenRings treat all tokens alike.
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

// Find returns the caller for a token, or why it is not valid.
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

// errNoName is returned for a token without the claim with its subject's name.
var errNoName = errors.New("the token has no name")

// grantOf returns a caller with the rights of the groups, without roles if they have none.
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

// alike reports whether two callers have the same task types and addresses.
func (k *Caller) alike(other *Caller) bool {
	return slices.Equal(k.Types, other.Types) && slices.Equal(k.Addresses, other.Addresses)
}

// again returns the current caller of a token: nil if the token is no longer accepted, or an error if that is
// unknown.
func (t *TokenRing) again(k *Caller, now time.Time) (*Caller, error) {
	switch {
	case k.token.issuer != t.Issuer: // verified with other settings; the token must be sent again
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

// subjectName returns a subject's name for the trail, the log and answers. Characters that names of keys cannot have
// are replaced. A name that was changed or cut ends in ~ and a part of its hash, so that different subjects have
// different names.
func subjectName(text string) string {
	clean := strings.Map(func(c rune) rune {
		if c < 0x80 && (KeyNamePattern.MatchString(string(c)) || c == '@') {
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

// Who returns the caller for text, which is a key or a token; keys take precedence.
func (t *Keyring) Who(text []byte, now time.Time) (k *Caller, why Failure, bad *refuse.Refusal) {
	k = t.FindText(text)
	switch {
	case k != nil:
		return k, 0, nil
	case !oidc.IsToken(text):
		return nil, FailUnknown, Unauthorized("Unknown API key")
	case t.Tokens == nil:
		return nil, FailUnknown, Unauthorized("This server takes no tokens: it has no oidc settings")
	}
	k, err := t.Tokens.Find(text, now)
	if err != nil {
		why, bad = BadToken(err)
	}
	return k, why, bad
}

// tokenFailures maps errors of tokens to failures and their texts.
var tokenFailures = []struct {
	err  error
	why  Failure
	text string
}{
	{oidc.ErrMalformed, FailMalformed, "The token is malformed: it must be a signed JWT of at most 8 KiB with iss, aud, sub and exp"},
	{oidc.ErrAlgorithm, failSignature, "The token is signed by an algorithm that oidc.algorithms does not have"},
	{oidc.ErrIssuer, FailIssuer, "The token is of another issuer than oidc.issuer"},
	{oidc.ErrAudience, failAudience, "The token is for another audience than oidc.audience"},
	{oidc.ErrExpired, FailExpired, "The token has expired"},
	{oidc.ErrEarly, failEarly, "The token is not valid yet"},
	{oidc.ErrLifetime, failLifetime, "The token is valid for longer than oidc.lifetime_max"},
	{oidc.ErrSignature, failSignature, "The token is not signed with a key that the issuer has"},
	{errNoName, FailMalformed, "The token does not have the claim that oidc.name_claim names"},
}

// BadToken returns the refusal of a token. It repeats nothing of the token.
func BadToken(err error) (Failure, *refuse.Refusal) {
	for _, f := range tokenFailures {
		if errors.Is(err, f.err) {
			return f.why, refuse.New(wire.CodeUnauthorized, f.text,
				"Get a new token from the issuer for this server's audience, and send it as Authorization: Bearer TOKEN")
		}
	}
	return FailUnchecked, refuse.Overloaded(nodes.BoundIssuer, "The token cannot be checked now: the keys of its issuer are not there yet")
}
