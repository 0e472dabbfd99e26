package contract

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/oidc/oidctest"
)

// issuer issues tokens that the nodes with keys accept.
type issuer struct {
	config string // the nodes' file, with the rights of its groups
	tokens vars
}

// newIssuer starts an issuer. The groups are ops, operators; readers; senders, producers;
// letters, producers and workers of that type; slow, readers that may ask each node once a
// minute.
func newIssuer(t *testing.T) *issuer {
	t.Helper()
	made := oidctest.New(t)
	settings := fmt.Sprintf("oidc:\n  issuer: %s\n  audience: %s\n  roles:\n", made.URL, oidctest.Audience)
	for _, role := range []string{
		"group: ops, role: operator, rate_limit_per_minute: 0",
		"group: slow, role: reader, rate_limit_per_minute: 1",
		"group: letters, roles: [producer, worker], task_types: [letter], rate_limit_per_minute: 0",
		"group: readers, role: reader, rate_limit_per_minute: 0",
		"group: senders, role: producer, rate_limit_per_minute: 0",
	} {
		settings += "    - {" + role + "}\n"
	}
	i := &issuer{config: filepath.Join(t.TempDir(), "claimq.yaml"), tokens: vars{}}
	if err := os.WriteFile(i.config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	i.addGood(made)
	i.addBad(t, made)
	return i
}

func (i *issuer) add(name, token string) { i.tokens["token_"+name] = strconv.Quote(token) }

// addGood adds tokens that are valid for an hour: token_GROUP of a member of each group;
// token_slow_again, another one of slow's subject, and token_slow_other, another subject's;
// token_both, of readers and senders; token_nobody, of no group with a role.
func (i *issuer) addGood(made *oidctest.Issuer) {
	for _, group := range []string{"ops", "slow", "letters", "readers", "senders"} {
		i.add(group, made.Sign(claims(made, "one-of-"+group, group)))
	}
	again := claims(made, "one-of-slow", "slow")
	again["jti"] = "2"
	i.add("slow_again", made.Sign(again))
	i.add("slow_other", made.Sign(claims(made, "other-of-slow", "slow")))
	i.add("both", made.Sign(claims(made, "both", "senders", "readers")))
	i.add("nobody", made.Sign(claims(made, "nobody", "staff")))
}

// addBad adds an operator's tokens with one fault each: token_elsewhere has another issuer,
// token_others another audience; token_expired has expired, token_early is not valid yet,
// token_endless lasts two days; token_nameless has no subject. token_forged is signed with
// another key, token_unknown with one that also has another name, token_shared with a
// shared secret, token_unsigned has no signature; token_changed was a reader's.
func (i *issuer) addBad(t *testing.T, made *oidctest.Issuer) {
	t.Helper()
	for name, change := range map[string]map[string]any{
		"elsewhere": {"iss": "https://elsewhere.example"},
		"others":    {"aud": "others"},
		"expired":   {"iat": in(-2 * time.Hour), "exp": in(-time.Hour)},
		"early":     {"nbf": in(time.Hour), "exp": in(2 * time.Hour)},
		"endless":   {"exp": in(48 * time.Hour)},
		"nameless":  {"sub": ""},
	} {
		c := claims(made, "mona", "ops")
		maps.Copy(c, change)
		i.add(name, made.Sign(c))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	operator := claims(made, "mona", "ops")
	i.add("forged", oidctest.Sign(t, key, "ES256", map[string]any{"kid": "k1"}, operator))
	i.add("shared", oidctest.Sign(t, make([]byte, 32), "HS256", map[string]any{"kid": "k1"}, operator))
	payload := strings.Split(made.Sign(operator), ".")[1]
	i.add("unsigned", base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))+"."+payload+".")
	reader := strings.Split(made.Sign(claims(made, "mona", "readers")), ".")
	i.add("changed", reader[0]+"."+payload+"."+reader[2])
	operator["iat"] = in(-time.Hour) // so that the nodes cannot expect newer keys
	i.add("unknown", oidctest.Sign(t, key, "ES256", map[string]any{"kid": "k2"}, operator))
}

// claims returns the claims of a token that is valid for an hour.
func claims(made *oidctest.Issuer, subject string, groups ...string) map[string]any {
	c := made.Claims(subject, groups...)
	c["exp"] = in(time.Hour)
	return c
}

// in returns the time in d in the format of a token.
func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

// awaited waits until each node has the issuer's keys.
func (i *issuer) awaited(t *testing.T, c *cluster) {
	t.Helper()
	ask := i.tokens.filled(step{method: "GET", target: "/api/stats?consistency=stale", headers: [][2]string{{"Authorization", "Bearer $token_readers"}}})
	for _, n := range c.Nodes {
		for end := time.Now().Add(stepTimeout); ; {
			a := c.send(t.Context(), n.URL(), ask)
			if a.err == nil && a.status == http.StatusOK {
				break
			}
			if !time.Now().Before(end) {
				t.Fatalf("%s takes no tokens: %d %s %v", n.ID, a.status, a.body, a.err)
			}
			<-time.After(againInterval)
		}
	}
}
