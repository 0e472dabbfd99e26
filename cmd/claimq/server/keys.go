package server

import (
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/certs"
	"github.com/claimq/claimq/internal/oidc"
)

// apiKeys returns a function that loads the configuration again, checks the secret files that it names, and returns
// its API keys.
func apiKeys(load func() (config.Loaded, error), files *secretFiles) func() ([]door.Key, error) {
	return func() ([]door.Key, error) {
		loaded, err := load()
		if err != nil {
			return nil, err
		}
		files.look(&loaded)
		return KeysOf(&loaded), nil
	}
}

// KeysOf returns the API keys and the credentials of a configuration, each with its field.
func KeysOf(loaded *config.Loaded) []door.Key {
	keys := make([]door.Key, 0, len(loaded.Keys)+len(loaded.SQS.Credentials))
	for i := range loaded.Keys {
		keys = append(keys, keyOf(&loaded.Keys[i], fmt.Sprintf("keys[%d]", i)))
	}
	for i := range loaded.SQS.Credentials {
		c := &loaded.SQS.Credentials[i]
		k := keyOf(&c.Key, fmt.Sprintf("credentials[%d]", i))
		k.AccessKeyID, k.Secret = c.AccessKeyID, c.Secret
		keys = append(keys, k)
	}
	return keys
}

func keyOf(k *config.Key, field string) door.Key {
	return door.Key{
		Field: field, Name: k.Name, Role: k.Role, Roles: k.Roles, SHA256: k.KeySHA256,
		RateLimitPerMinute: k.RateLimitPerMinute, TaskTypes: k.TaskTypes, ExpiresAt: k.ExpiresAt, Addresses: k.Addresses,
	}
}

// warnOpen warns if no keys are required.
func warnOpen(server *api.Server, insecure bool, logger hclog.Logger) {
	switch {
	case !server.Open():
	case insecure:
		logger.Warn("no API keys and no oidc are configured, and --insecure is given: anyone who reaches the port may do everything")
	default:
		logger.Warn("no API keys and no oidc are configured: anyone who reaches the port may do everything")
	}
}

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
