package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// The accepted sizes of RSA keys: smaller ones can be broken, larger ones take too long.
const (
	rsaBitsMin = 2048
	rsaBitsMax = 4096 // jose.MaxRSAModulusBits
)

// jwks is a JSON Web Key Set as sent by the issuer.
type jwks struct {
	Keys []json.RawMessage `json:"keys"`
}

// SignerID identifies a key of an issuer by a hash. It can be compared.
type SignerID [32]byte

// signer is a key of the issuer.
type signer struct {
	id  SignerID
	kid string // "" if it has no name
	alg string // the only algorithm of the key; "": any that fits its kind
	key any    // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// keySet holds the keys that an issuer had at a time. It is never changed.
type keySet struct {
	all []signer
	at  time.Time
}

// newKeySet picks those of the keys that sign tokens and can be checked here; issuers also
// have others.
func newKeySet(sent *jwks, at time.Time) (*keySet, error) {
	if len(sent.Keys) > keysMax {
		return nil, fmt.Errorf("there are %d: at most %d are taken", len(sent.Keys), keysMax)
	}
	set := &keySet{at: at}
	for _, text := range sent.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(text, &k) != nil || k.Use != "" && k.Use != "sig" || !usable(k.Key) {
			continue
		}
		s := signer{kid: k.KeyID, alg: k.Algorithm, key: k.Key}
		sum, err := k.Thumbprint(crypto.SHA256)
		if err != nil {
			continue
		}
		copy(s.id[:], sum)
		set.all = append(set.all, s)
	}
	if len(set.all) == 0 {
		return nil, errors.New("there is none that signs tokens: RSA of 2,048 to 4,096 bits, EC and Ed25519 are taken")
	}
	return set, nil
}

func usable(key any) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= rsaBitsMin && k.N.BitLen() <= rsaBitsMax
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// find returns the key that signed a token, by its kid and algorithm, or nil. Without a kid
// only one key may fit.
func (s *keySet) find(kid, alg string) *signer {
	var found *signer
	for i := range s.all {
		k := &s.all[i]
		switch {
		case !k.fits(alg), kid != "" && k.kid != kid:
		case kid != "":
			return k
		case found != nil:
			return nil
		default:
			found = k
		}
	}
	return found
}

// has reports whether the set contains the key.
func (s *keySet) has(id SignerID) bool {
	return slices.ContainsFunc(s.all, func(k signer) bool { return k.id == id })
}

// fits reports whether the key can be used with the algorithm.
func (k *signer) fits(alg string) bool {
	if k.alg != "" && k.alg != alg {
		return false
	}
	switch key := k.key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return alg == ecdsaAlgorithms[key.Curve.Params().BitSize]
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}

// ecdsaAlgorithms maps the bits of a curve to the algorithm. It is never changed.
var ecdsaAlgorithms = map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}
