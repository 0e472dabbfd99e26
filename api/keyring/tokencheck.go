package keyring

import (
	"errors"
	"time"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/oidc"
	"github.com/claimq/claimq/nodes"
)

// Who returns the caller for text, which is a key or a token; keys take precedence.
func (t *Ring) Who(text []byte, now time.Time) (k *Caller, why Failure, bad *refuse.Refusal) {
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
