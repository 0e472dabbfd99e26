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

// TokenBytesMax bounds an encoded token.
const TokenBytesMax = 8 << 10

// nestingMax bounds the levels of JSON in a token's header and in its claims; the outermost
// value is the first. Parsing takes stack and time for each level, and a goroutine keeps
// the stack until memory is collected: half a MiB, if a caller could send thousands of
// levels.
const nestingMax = 64

// Reasons to reject a token. No error contains anything of the token.
var (
	// ErrMalformed is returned for text that is not a signed token, and for tokens that
	// lack a required claim.
	ErrMalformed = errors.New("the token is malformed")
	// ErrAlgorithm is returned for a token that is unsigned, or signed by an
	// algorithm that is not accepted.
	ErrAlgorithm = errors.New("the token is signed by an algorithm that is not taken")
	// ErrIssuer is returned for a token of another issuer.
	ErrIssuer = errors.New("the token is of another issuer")
	// ErrAudience is returned for a token that was made for another audience.
	ErrAudience = errors.New("the token is for another audience")
	// ErrExpired is returned for a token that has expired.
	ErrExpired = errors.New("the token has expired")
	// ErrEarly is returned for a token that is not valid yet.
	ErrEarly = errors.New("the token is not valid yet")
	// ErrLifetime is returned for a token whose lifetime exceeds LifetimeMax.
	ErrLifetime = errors.New("the token is valid for too long")
	// ErrSignature is returned for a token that was not signed with a key of the issuer.
	ErrSignature = errors.New("the token is not signed with a key of the issuer")
	// ErrNoKeys is returned while the issuer's keys are missing, or if the token names one
	// that is missing while they are being fetched or are older than the token. The caller
	// should try again.
	ErrNoKeys = errors.New("the keys of the issuer are not there")
)

// latest is the last second that a time in a token may have: the end of the year 9999.
const latest = 253402300799

// Claims holds the claims of a valid token.
type Claims struct {
	// Subject identifies the user or program: never empty, and unique at the issuer.
	Subject string
	// ExpiresAt is the time at which the token expires by its issuer's clock.
	ExpiresAt time.Time
	// Signer identifies the key that signed the token.
	Signer SignerID

	issued time.Time // by its issuer's clock; zero: not stated
	all    map[string]any
}

// IsToken reports whether text looks like a signed token: three parts, the first of which
// starts like a JSON object in base64.
func IsToken(text []byte) bool {
	return len(text) > 2 && text[0] == 'e' && text[1] == 'y' && strings.Count(string(text), ".") == 2
}

// kinds lists the types of tokens that identify a caller. Others of the same issuer, such
// as those that log a user out, do not.
var kinds = map[string]bool{"": true, "jwt": true, "at+jwt": true, "application/at+jwt": true}

// Check returns the claims of a token if it is valid at that time. Errors: those of this
// package. It looks at the claims first, so that only a token that would be valid costs
// checking a signature, or a question to the issuer.
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
// nestingMax, or are not base64.
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

// levels returns the number of levels of JSON. For other text it returns any number.
func levels(text []byte) (most int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++ // skips an escaped quote
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

// Trusts returns nil if a key that signed a token before is still among the issuer's.
// Errors: ErrSignature, ErrNoKeys.
func (i *Issuer) Trusts(id SignerID, now time.Time) error {
	switch keys := i.keys.Load(); {
	case !keys.use(now):
		return ErrNoKeys
	case !keys.has(id):
		return ErrSignature
	}
	return nil
}

// use reports whether there are keys, and they are new enough.
func (s *keySet) use(now time.Time) bool { return s != nil && now.Sub(s.at) < keysUseMax }

// read returns the claims in the payload of a token whose signature is not checked yet.
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

// younger reports whether a token may have been issued after the keys were fetched, so that
// it may be signed with a key that was not fetched.
func (c *Claims) younger(keys *keySet, leeway time.Duration) bool {
	const exact = time.Second // iat has no fractions
	return !c.issued.IsZero() && !c.issued.Add(exact+leeway).Before(keys.at)
}

// Texts returns the texts of a claim: a single one, the elements of a list, or the words of
// scope and scp. name is the claim's name, or a path through objects with dots. Values that
// are not text are left out.
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

// claim returns the claim of that name, or nil. A name that itself contains dots takes
// precedence over a path.
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
