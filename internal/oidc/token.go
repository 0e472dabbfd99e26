package oidc

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TokenBytesMax bounds a token as it is sent.
const TokenBytesMax = 8 << 10

// nestingMax bounds the levels of JSON in a token's header and in its claims, the
// outermost value being the first. Reading one takes stack and time for each of them, and
// whoever reads it keeps the stack until memory is collected: half a MiB, if anybody could
// have thousands.
const nestingMax = 64

// Why a token is not taken. No error has anything of the token.
var (
	// ErrMalformed is returned for what is no signed token, or one that lacks a claim
	// that it must have.
	ErrMalformed = errors.New("the token is malformed")
	// ErrAlgorithm is returned for a token that is signed by an algorithm that is not
	// taken, or not at all.
	ErrAlgorithm = errors.New("the token is signed by an algorithm that is not taken")
	// ErrIssuer is returned for a token of another issuer.
	ErrIssuer = errors.New("the token is of another issuer")
	// ErrAudience is returned for a token that was made for somebody else.
	ErrAudience = errors.New("the token is for another audience")
	// ErrExpired is returned for a token that was good once.
	ErrExpired = errors.New("the token has expired")
	// ErrEarly is returned for a token that is not good yet.
	ErrEarly = errors.New("the token is not valid yet")
	// ErrLifetime is returned for a token that is good for longer than LifetimeMax.
	ErrLifetime = errors.New("the token is valid for too long")
	// ErrSignature is returned for a token that no key of the issuer signed.
	ErrSignature = errors.New("the token is not signed with a key of the issuer")
	// ErrNoKeys is returned while the issuer's keys are not there, or the token names one
	// that is not among them, and they are being fetched or older than the token: asking
	// again is worth it.
	ErrNoKeys = errors.New("the keys of the issuer are not there")
)

// latest is the last second that a time of a token may name: the end of the year 9999.
const latest = 253402300799

// Claims are what a token says, once it was found to be good.
type Claims struct {
	// Subject is whom it is about: never empty, one for each of the issuer's.
	Subject string
	// ExpiresAt is when it is good no longer by its issuer's clock.
	ExpiresAt time.Time
	// Signer is the key that it was signed with.
	Signer SignerID

	issued time.Time // by its issuer's clock; zero: it does not say
	all    map[string]any
}

// IsToken reports whether text looks like a signed token: three parts, of which the
// first one begins as a JSON object does in base64.
func IsToken(text []byte) bool {
	return len(text) > 2 && text[0] == 'e' && text[1] == 'y' && strings.Count(string(text), ".") == 2
}

// kinds are the types of tokens that say who asks. Others of the same issuer, as those
// that log somebody out, do not.
var kinds = map[string]bool{"": true, "jwt": true, "at+jwt": true, "application/at+jwt": true}

// Check returns what a token says, and that it is good at that time. Errors: those of
// this package. What a token says of itself is looked at first: only one that would be
// good costs the check of a signature, or a look at the issuer.
func (i *Issuer) Check(token []byte, now time.Time) (*Claims, error) {
	if len(token) > TokenBytesMax || isDeep(token) {
		return nil, ErrMalformed
	}
	signed, err := jose.ParseSignedCompact(string(token), i.algorithms)
	switch {
	case errors.As(err, new(*jose.ErrUnexpectedSignatureAlgorithm)):
		return nil, ErrAlgorithm
	case err != nil || len(signed.Signatures) != 1:
		return nil, ErrMalformed
	}
	head := signed.Signatures[0].Protected
	if kind, _ := head.ExtraHeaders[jose.HeaderType].(string); !kinds[strings.ToLower(kind)] {
		return nil, ErrMalformed
	}
	claims, err := i.read(signed.UnsafePayloadWithoutVerification(), now)
	if err != nil {
		return nil, err
	}
	keys := i.keys.Load()
	if !keys.use(now) {
		return nil, ErrNoKeys
	}
	key := keys.find(head.KeyID, head.Algorithm)
	switch {
	case key == nil && (i.askForKeys(now) || head.KeyID != "" && claims.younger(keys, i.cfg.Leeway)):
		return nil, ErrNoKeys
	case key == nil:
		return nil, ErrSignature
	}
	if _, err := signed.Verify(key.key); err != nil {
		return nil, ErrSignature
	}
	claims.Signer = key.id
	return claims, nil
}

// isDeep reports whether the header or the claims of a token have more levels than
// nestingMax, or are no base64.
func isDeep(token []byte) bool {
	parts := bytes.SplitN(token, []byte{'.'}, 3)
	for _, part := range parts[:min(len(parts), 2)] {
		text, err := base64.RawURLEncoding.AppendDecode(nil, part)
		if err != nil || levels(text) > nestingMax {
			return true
		}
	}
	return false
}

// levels returns how many levels JSON has; of what is no JSON any number.
func levels(text []byte) (most int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++ // a quote behind it ends nothing
		case quoted:
		case c == '{' || c == '[':
			level++
			most = max(most, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return most
}

// Trusts says what is wrong with a key that signed a token before: nothing, if it is among
// the issuer's still. Errors: ErrSignature, ErrNoKeys.
func (i *Issuer) Trusts(id SignerID, now time.Time) error {
	switch keys := i.keys.Load(); {
	case !keys.use(now):
		return ErrNoKeys
	case !keys.has(id):
		return ErrSignature
	}
	return nil
}

// use reports whether the keys are there, and new enough.
func (s *keySet) use(now time.Time) bool { return s != nil && now.Sub(s.at) < keysUseMax }

// read returns what the payload of a token says that nobody has checked the signature of.
func (i *Issuer) read(payload []byte, now time.Time) (*Claims, error) {
	var c jwt.Claims
	all := make(map[string]any)
	if json.Unmarshal(payload, &c) != nil || json.Unmarshal(payload, &all) != nil {
		return nil, ErrMalformed
	}
	if c.Subject == "" || c.Expiry == nil || *c.Expiry < 0 || *c.Expiry > latest || c.IssuedAt != nil && (*c.IssuedAt < 0 || *c.IssuedAt > latest) || c.NotBefore != nil && (*c.NotBefore < 0 || *c.NotBefore > latest) {
		return nil, ErrMalformed
	}
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: i.cfg.URL, AnyAudience: jwt.Audience{i.cfg.Audience}, Time: now}, i.cfg.Leeway)
	switch {
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return nil, ErrIssuer
	case errors.Is(err, jwt.ErrInvalidAudience):
		return nil, ErrAudience
	case errors.Is(err, jwt.ErrExpired):
		return nil, ErrExpired
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return nil, ErrEarly
	case err != nil:
		return nil, ErrMalformed
	}
	claims := &Claims{Subject: c.Subject, ExpiresAt: c.Expiry.Time(), all: all}
	from := now
	if c.IssuedAt != nil {
		from = c.IssuedAt.Time()
		claims.issued = from
	}
	if most := i.cfg.LifetimeMax; most > 0 && c.Expiry.Time().Sub(from) > most {
		return nil, ErrLifetime
	}
	return claims, nil
}

// younger reports whether a token may have been issued after the keys were fetched: what
// signed it may then be a key that they do not have yet.
func (c *Claims) younger(keys *keySet, leeway time.Duration) bool {
	const exact = time.Second // iat has no fractions
	return !c.issued.IsZero() && !c.issued.Add(exact+leeway).Before(keys.at)
}

// Texts returns the texts of a claim: one, those of a list, or the words of scope and scp.
// name is the claim's, or leads to it through objects with a dot between each two. What is
// no text is left out.
func (c *Claims) Texts(name string) []string {
	switch v := claim(c.all, name).(type) {
	case string:
		if last := name[strings.LastIndexByte(name, '.')+1:]; last == "scope" || last == "scp" {
			return strings.Fields(v)
		}
		return []string{v}
	case []any:
		var texts []string
		for _, e := range v {
			if text, ok := e.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}

// claim returns the claim of that name, nil if there is none. A name that has dots itself
// beats a path.
func claim(all map[string]any, name string) any {
	if v, ok := all[name]; ok {
		return v
	}
	for i, c := range name {
		if c != '.' {
			continue
		}
		if inner, ok := all[name[:i]].(map[string]any); ok {
			if v := claim(inner, name[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}
