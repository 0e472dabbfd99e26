package config

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/internal/oidc"
)

// The accepted algorithms equal those of package oidc, although the packages do not know each other.
func TestOIDC_isWhatIsChecked(t *testing.T) {
	t.Parallel()
	if want := oidc.Algorithms(); !slices.Equal(oidcAlgorithms[:], want) {
		t.Errorf("the algorithms are %v, want %v", oidcAlgorithms, want)
	}
	for _, issuer := range []string{
		"https://a.example", "https://a.example:8443/realms/b", "http://127.0.0.1:1/x", "http://[::1]", "http://localhost:5556/dex",
		"", "a.example", "http://a.example", "ftp://a.example", "https://", "https://u@a.example", "https://a.example?", "https://a.example?b", "https://a.example#", "https://:1",
	} {
		if got, want := isIssuer(issuer), oidc.CheckURL(issuer) == nil; got != want {
			t.Errorf("%q is an issuer: %v, want %v", issuer, got, want)
		}
	}
}
