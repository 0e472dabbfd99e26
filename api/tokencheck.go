package api

import (
	"errors"
	"time"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/oidc"
)

// who returns the key that was sent as text or that a token which was sent stands for. A
// key comes before a token.
func (t *keyTable) who(text []byte, now time.Time) (k *apiKey, why failure, bad *refuse.Refusal) {
	k = t.findText(text)
	switch {
	case k != nil:
		return k, 0, nil
	case !oidc.IsToken(text):
		return nil, failUnknown, refuseUnauthorized("Unknown API key")
	case t.tokens == nil:
		return nil, failUnknown, refuseUnauthorized("This server takes no tokens: it has no oidc settings")
	}
	k, err := t.tokens.find(text, now)
	if err != nil {
		why, bad = refuseToken(err)
	}
	return k, why, bad
}

// tokenFailures are why tokens are refused, and what is said of it. It is never changed.
var tokenFailures = []struct {
	err  error
	why  failure
	text string
}{
	{oidc.ErrMalformed, failMalformed, "The token is malformed: it must be a signed JWT of at most 8 KiB with iss, aud, sub and exp"},
	{oidc.ErrAlgorithm, failSignature, "The token is signed by an algorithm that oidc.algorithms does not have"},
	{oidc.ErrIssuer, failIssuer, "The token is of another issuer than oidc.issuer"},
	{oidc.ErrAudience, failAudience, "The token is for another audience than oidc.audience"},
	{oidc.ErrExpired, failExpired, "The token has expired"},
	{oidc.ErrEarly, failEarly, "The token is not valid yet"},
	{oidc.ErrLifetime, failLifetime, "The token is valid for longer than oidc.lifetime_max"},
	{oidc.ErrSignature, failSignature, "The token is not signed with a key that the issuer has"},
	{errNoName, failMalformed, "The token does not have the claim that oidc.name_claim names"},
}

// refuseToken is the refusal of a token. Nothing of it is told.
func refuseToken(err error) (failure, *refuse.Refusal) {
	for _, f := range tokenFailures {
		if errors.Is(err, f.err) {
			return f.why, &refuse.Refusal{
				Code: wire.CodeUnauthorized, Text: f.text,
				Advice: "Get a new token from the issuer for this server's audience, and send it as Authorization: Bearer TOKEN",
			}
		}
	}
	f := refuse.Because(wire.CodeOverloaded)
	f.Text, f.Reason = "The token cannot be checked now: the keys of its issuer are not there yet", fsm.Reason(fsm.BoundIssuer)
	return failUnchecked, f
}
