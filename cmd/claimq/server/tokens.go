package server

import (
	"fmt"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/certs"
	"github.com/claimq/claimq/internal/oidc"
)

// apiTokens returns a function that loads the configuration again, and returns how tokens are checked; nil: no tokens
// are accepted.
func apiTokens(load func() (config.Loaded, error)) func() (*door.Tokens, error) {
	return func() (*door.Tokens, error) {
		loaded, err := load()
		if err != nil || loaded.OIDC.Issuer == "" {
			return nil, err
		}
		o := &loaded.OIDC
		if _, err := certs.OpenRenewed(nil, o.CAFile, "", ""); err != nil {
			return nil, fmt.Errorf("oidc.ca_file: %w", err)
		}
		tokens := &door.Tokens{
			Issuer: oidc.Config{
				URL: o.Issuer, Audience: o.Audience, Algorithms: o.Algorithms, Leeway: o.Leeway, LifetimeMax: o.LifetimeMax, CAFile: o.CAFile,
			},
			GroupsClaim: o.GroupsClaim, NameClaim: o.NameClaim,
		}
		for i, r := range o.Roles {
			tokens.Roles = append(tokens.Roles, door.TokenRole{Group: r.Group, Key: keyOf(&r.Key, fmt.Sprintf("oidc.roles[%d]", i))})
		}
		return tokens, nil
	}
}
