package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	// tokenRolesMax bounds the roles of groups.
	tokenRolesMax = 1_000
	// groupBytesMax bounds the name of a group.
	groupBytesMax = 256
	// oidcLeewayMax bounds oidc.leeway; clocks that differ by more should be corrected.
	oidcLeewayMax = 5 * time.Minute
	// oidcLifetimeMax bounds oidc.lifetime_max to a year.
	oidcLifetimeMax = 8760 * time.Hour
)

// oidcAlgorithms are the permitted signature algorithms of tokens.
var oidcAlgorithms = [...]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// OIDC is the OpenID Connect issuer whose tokens are accepted.
type OIDC struct {
	// Issuer is its URL, Audience the required audience of its tokens; set both or neither.
	Issuer, Audience string
	// GroupsClaim is the claim with the groups, NameClaim the one with the name for the trail. Dots lead into
	// objects.
	GroupsClaim, NameClaim string
	// Algorithms are the accepted signature algorithms.
	Algorithms []string
	// Leeway is the tolerated difference between the clocks, LifetimeMax the longest accepted validity of a token; 0:
	// no bound.
	Leeway, LifetimeMax time.Duration
	// CAFile has the authorities (PEM) that sign the issuer's certificate; empty: the system's.
	CAFile string
	// Roles are the rights of groups, in the order in which they are tried.
	Roles []TokenRole
}

// TokenRole holds the rights of a group's members, like a Key. Name, KeySHA256 and ExpiresAt are ignored.
type TokenRole struct {
	Group string
	Key
}

var tokenRoleFields = [...]string{"group", "role", "roles", "rate_limit_per_minute", "task_types", "addresses"}

// tokenRoles sets the rights of groups.
func (f *fileReader) tokenRoles(sequence *yaml.Node) {
	if sequence.Kind != yaml.SequenceNode {
		f.mistake("%s: oidc.roles must be a list of mappings with group and role", f.at(sequence))
		return
	}
	if len(sequence.Content) > tokenRolesMax {
		f.mistake("%s: there are over %d oidc.roles", f.at(sequence), tokenRolesMax)
		return
	}
	f.loaded.Origins[rolesName] = Origin{FromFile, f.path}
	for _, e := range sequence.Content {
		if e = resolve(e); e.Kind != yaml.MappingNode {
			f.mistake("%s: each of oidc.roles must be a mapping with group and role", f.at(e))
			continue
		}
		f.loaded.OIDC.Roles = append(f.loaded.OIDC.Roles, f.tokenRole(e))
	}
}

func (f *fileReader) tokenRole(m *yaml.Node) TokenRole {
	var r TokenRole
	f.entries(m, func(field, value *yaml.Node) {
		switch name := field.Value; {
		case isNull(value):
			// As if it were absent.
		case name == "group" && value.Kind == yaml.ScalarNode:
			r.Group = value.Value
		case f.grant(&r.Key, name, value):
		case slices.Contains(tokenRoleFields[:], name):
			f.mistake("%s: %s of oidc.roles is of the wrong kind", f.at(value), name)
		default:
			f.mistake("%s: %s", f.at(field), unknown("field of oidc.roles", name, tokenRoleFields[:]))
		}
	})
	return r
}

// validateOIDC records mistakes in the issuer of tokens.
func (s *Server) validateOIDC(add func(string, ...any)) {
	o := &s.OIDC
	if o.Issuer == "" {
		if o.Audience != "" || len(o.Roles) > 0 || o.CAFile != "" {
			add("oidc.issuer is not set: oidc.audience, oidc.roles and oidc.ca_file go with it")
		}
		return
	}
	if !isIssuer(o.Issuer) {
		add("oidc.issuer is %q: it must be https://HOST, with the port and the path that its tokens have in iss, and no query; http:// on loopback alone", o.Issuer)
	}
	if o.Audience == "" {
		add("oidc.audience is not set: name whom the issuer makes tokens for this server for, else those for all others would be taken")
	}
	if o.GroupsClaim == "" || o.NameClaim == "" {
		add("oidc.groups_claim is %q and oidc.name_claim %q: both must name a claim", o.GroupsClaim, o.NameClaim)
	}
	if len(o.Algorithms) == 0 {
		add("oidc.algorithms has none: it must have one or more of %s", strings.Join(oidcAlgorithms[:], ", "))
	}
	for _, a := range o.Algorithms {
		if !slices.Contains(oidcAlgorithms[:], a) {
			add("oidc.algorithms has %q: each must be one of %s", a, strings.Join(oidcAlgorithms[:], ", "))
		}
	}
	for i := range o.Roles {
		r := &o.Roles[i]
		which := fmt.Sprintf("oidc.roles: role %d (group %q)", i+1, r.Group)
		if r.Group == "" || len(r.Group) > groupBytesMax {
			add("%s: its group must be 1 to %d bytes", which, groupBytesMax)
		}
		r.validateGrant(add, which)
	}
}

// isIssuer reports whether s can be the URL of an issuer.
func isIssuer(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.ContainsAny(s, "?#") {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname())
}
