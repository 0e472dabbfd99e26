package api

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/oidc"
	"github.com/claimq/claimq/internal/oidc/oidctest"
	"github.com/claimq/claimq/nodes"
)

// tokensOf returns the settings that accept tokens of the issuer.
func tokensOf(issuer *oidctest.Issuer) *door.Tokens {
	roles := []door.TokenRole{
		{Group: "ops", Key: door.Key{Role: "operator"}},
		{Group: "senders", Key: door.Key{Role: "producer"}},
		{Group: "mail", Key: door.Key{Roles: []string{"producer", "worker"}, TaskTypes: []string{"mail"}}},
		{Group: "bills", Key: door.Key{Roles: []string{"producer", "worker"}, TaskTypes: []string{"bill"}}},
		{Group: "workers", Key: door.Key{Role: "worker"}},
		{Group: "inside", Key: door.Key{Role: "operator", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
	}
	for i := range roles {
		roles[i].Field = fmt.Sprintf("oidc.roles[%d]", i)
		if roles[i].Group != "senders" {
			roles[i].RateLimitPerMinute = new(int64)
		}
	}
	return &door.Tokens{
		Issuer:      oidc.Config{URL: issuer.URL, Audience: oidctest.Audience, Algorithms: []string{"ES256"}, LifetimeMax: time.Hour},
		GroupsClaim: "groups", NameClaim: "sub", Roles: roles,
	}
}

// withTokens makes a server accept tokens.
func withTokens(tokens *door.Tokens) func(*Config) {
	return func(c *Config) {
		c.Tokens = func() (*door.Tokens, error) { copied := *tokens; return &copied, nil }
	}
}

// changingTokens are settings that a test can change.
type changingTokens struct {
	mu     sync.Mutex
	tokens *door.Tokens
}

func (c *changingTokens) set(tokens *door.Tokens) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = tokens
}

func (c *changingTokens) use(cfg *Config) {
	cfg.Tokens = func() (*door.Tokens, error) { c.mu.Lock(); defer c.mu.Unlock(); return c.tokens, nil }
}

// awaitIssuer waits until the server can check tokens.
func awaitIssuer(t *testing.T, servers ...*Server) {
	t.Helper()
	for _, s := range servers {
		waitFor(t, func() bool { return s.core.keys.Load().Tokens.Issuer.Stats(time.Now()).Fetched > 0 })
	}
}

// scrape returns the value of a line of the server's metrics, 0 if it is missing.
func scrape(t *testing.T, s *Server, line string) (value float64) {
	t.Helper()
	var ctx fasthttp.RequestCtx
	ctx.Init2(conntest.Nop{}, nil, true)
	s.scrape(&ctx)
	for text := range strings.Lines(string(ctx.Response.Body())) {
		if rest, ok := strings.CutPrefix(text, line+" "); ok {
			value, _ = strconv.ParseFloat(strings.TrimSpace(rest), 64)
		}
	}
	return value
}

// p256 returns a new key.
func p256(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func bearerOf(token string) string { return "Authorization: Bearer " + token }

// setupTokens returns a leader and a follower that both accept tokens, and have a key.
func setupTokens(t *testing.T) (issuer *oidctest.Issuer, leader, follower *Server) {
	t.Helper()
	issuer = oidctest.New(t)
	leader, _ = setup(t, withKeys(testKey("operator", "ops-key")), withTokens(tokensOf(issuer)))
	follower = followerOf(t, leader, withKeys(testKey("operator", "ops-key")), withTokens(tokensOf(issuer)))
	awaitIssuer(t, leader, follower)
	return issuer, leader, follower
}

// A token is accepted in addition to keys, here and through a follower, in both headers, and has the rights of its
// groups.
func TestTokens(t *testing.T) {
	t.Parallel()
	issuer, leader, follower := setupTokens(t)
	for _, s := range []*Server{leader, follower} {
		ops := bearerOf(issuer.Token("alice", "staff", "ops"))
		s.call(t, "GET /api/cluster", "", ops).good(t, 200)
		s.call(t, "GET /api/cluster", "", "X-API-Key: "+issuer.Token("alice", "ops")).good(t, 200)
		s.call(t, "GET /api/cluster", "", with("ops-key")).good(t, 200)
		s.call(t, "POST /api/tasks", `{"params":1}`, ops).good(t, 201)
		s.call(t, "POST /api/tasks", `{"params":1}`, bearerOf(issuer.Token("bob", "senders"))).good(t, 201)

		workers := bearerOf(issuer.Token("bob", "workers"))
		f := s.call(t, "POST /api/tasks", `{"params":1}`, workers).refused(t, wire.CodeForbidden)
		if f["role"] != "producer" {
			t.Errorf("%v", f)
		}
		// The roles of several groups with the same types add up.
		s.call(t, "POST /api/tasks", `{"params":1}`, bearerOf(issuer.Token("bob", "workers", "senders"))).good(t, 201)
		f = s.call(t, "POST /api/tasks", `{"params":1}`, bearerOf(issuer.Token("eve", "staff"))).refused(t, wire.CodeForbidden)
		if f["error"] != "The token has no group that has a role here" {
			t.Errorf("%v", f)
		}
		s.call(t, "POST /api/tasks", `{"params":1}`, bearerOf(issuer.Token("eve"))).refused(t, wire.CodeForbidden)
		s.call(t, "GET /api/cluster", "").refused(t, wire.CodeUnauthorized)
		s.callFrom(t, "10.1.2.3", "GET /api/cluster", "", bearerOf(issuer.Token("in", "inside"))).good(t, 200)
		f = s.callFrom(t, "192.0.2.1", "GET /api/cluster", "", bearerOf(issuer.Token("in", "inside"))).refused(t, wire.CodeForbidden)
		if f["error"] != "This token may not be used from 192.0.2.1" {
			t.Errorf("%v", f)
		}
	}
	if leader.Open() {
		t.Error("it is open")
	}
}

// With task types a token is isolated like a key, including its idempotency keys. A group with other types adds
// nothing to the first.
func TestTokens_Types(t *testing.T) {
	t.Parallel()
	issuer, leader, follower := setupTokens(t)
	for i, s := range []*Server{leader, follower} {
		mail, bill := bearerOf(issuer.Token("m", "mail", "bills", "workers")), bearerOf(issuer.Token("b", "bills"))
		body := func(kind string) string {
			return fmt.Sprintf(`{"task_type":%q,"params":1,"idempotency_key":"same-%d"}`, kind, i)
		}
		s.call(t, "POST /api/tasks", body("mail"), mail).good(t, 201)
		s.call(t, "POST /api/tasks", body("bill"), bill).good(t, 201)
		s.call(t, "POST /api/tasks", body("bill"), mail).refused(t, wire.CodeForbidden)
		got := s.call(t, "POST /api/tasks/claim", `{"worker_id":"w"}`, mail).good(t, 200)
		if got.Task == nil || got.Task.TaskType != "mail" {
			t.Errorf("a claim of any type: %+v", got)
		}
	}
}

// A refused token is answered with a reason that repeats nothing of it, and counted.
func TestTokens_Refused(t *testing.T) {
	t.Parallel()
	issuer, leader, follower := setupTokens(t)
	other := oidctest.New(t)
	change := func(name string, value any) string {
		claims := issuer.Claims("mallory", "ops")
		claims[name] = value
		return issuer.Sign(claims)
	}
	unknown := oidctest.New(t)
	unknown.Add(p256(t), "ES256") // its kid is one that the issuer does not have
	for _, c := range []struct{ token, text, reason string }{
		{change("exp", time.Now().Unix()-5), "The token has expired", "expired"},
		{change("nbf", time.Now().Unix()+50), "The token is not valid yet", "early"},
		{change("aud", "mallory"), "The token is for another audience than oidc.audience", "audience"},
		{other.Token("mallory", "ops"), "The token is of another issuer than oidc.issuer", "issuer"},
		{other.Sign(issuer.Claims("mallory", "ops")), "The token is not signed with a key that the issuer has", "signature"},
		{oidctest.Sign(t, []byte(strings.Repeat("k", 64)), "HS256", nil, issuer.Claims("mallory", "ops")), "The token is signed by an algorithm that oidc.algorithms does not have", "signature"},
		{change("exp", time.Now().Unix()+7200), "The token is valid for longer than oidc.lifetime_max", "lifetime"},
		{"eyJx.e30.x", "The token is malformed: it must be a signed JWT of at most 8 KiB with iss, aud, sub and exp", "malformed"},
		{change("groups", strings.Repeat("x", 7<<10)), "The API key is malformed", "malformed"},
	} {
		for _, s := range []*Server{leader, follower} {
			before := scrape(t, s, `claimq_auth_failures_total{reason="`+c.reason+`"}`)
			got := s.call(t, "GET /api/tasks", "", bearerOf(c.token))
			f := got.refused(t, wire.CodeUnauthorized)
			if f["error"] != c.text || got.header["Www-Authenticate"] == "" || strings.Contains(got.body, "mallory") {
				t.Errorf("%s: %s", c.text, got.body)
			}
			if after := scrape(t, s, `claimq_auth_failures_total{reason="`+c.reason+`"}`); after != before+1 {
				t.Errorf("%s: reason %s went from %v to %v", c.text, c.reason, before, after)
			}
		}
	}
	f := leader.call(t, "GET /api/tasks", "", bearerOf(unknown.Sign(issuer.Claims("mallory", "ops")))).refused(t, wire.CodeOverloaded)
	if f["reason"] != "issuer" {
		t.Errorf("%v", f)
	}
}

// A node whose issuer cannot be reached serves keys, and says of tokens that they cannot be
// checked now.
func TestTokens_IssuerDown(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	issuer.SetDown(true)
	s, _ := setup(t, withKeys(testKey("operator")), withTokens(tokensOf(issuer)))
	token := bearerOf(issuer.Token("alice", "ops"))
	got := s.call(t, "GET /api/tasks", "", token)
	if f := got.refused(t, wire.CodeOverloaded); f["reason"] != "issuer" || got.header["Retry-After"] == "" {
		t.Errorf("%+v", got)
	}
	s.call(t, "GET /api/tasks", "", with("operator")).good(t, 200)
	waitFor(t, func() bool { return s.core.keys.Load().Tokens.Issuer.Stats(time.Now()).Failed > 0 })
	issuer.SetDown(false)
	waitFor(t, func() bool { return s.call(t, "GET /api/tasks", "", token).status == 200 })
	issuer.SetDown(true)
	s.call(t, "GET /api/tasks", "", token).good(t, 200)
	if n := scrape(t, s, `claimq_oidc_fetches_total{result="failed"}`); n < 1 {
		t.Errorf("%v fetches failed", n)
	}
	if n := scrape(t, s, `claimq_oidc_keys`); n != 1 {
		t.Errorf("%v keys", n)
	}
}

// A node without the settings does not open a cluster that has them, nor takes it in tokens
// that the other node says it knows.
func TestTokens_Differ(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	token := bearerOf(issuer.Token("alice", "ops"))
	for name, c := range map[string]struct {
		leader, follower []func(*Config)
		want             string
	}{
		"an open leader":         {nil, []func(*Config){withTokens(tokensOf(issuer))}, "This node leads and has no API keys"},
		"a leader with keys":     {[]func(*Config){withKeys(allRoles()...)}, []func(*Config){withTokens(tokensOf(issuer))}, "The leader does not know the API key"},
		"an open follower":       {[]func(*Config){withTokens(tokensOf(issuer))}, nil, ""},
		"a follower with keys":   {[]func(*Config){withTokens(tokensOf(issuer))}, []func(*Config){withKeys(allRoles()...)}, "This server takes no tokens"},
		"other roles, as leader": {[]func(*Config){withTokens(fewer(tokensOf(issuer)))}, []func(*Config){withTokens(tokensOf(issuer))}, "The token has no group"},
	} {
		leader, _ := setup(t, c.leader...)
		follower := followerOf(t, leader, c.follower...)
		for _, s := range []*Server{leader, follower} {
			if keys := s.core.keys.Load(); keys != nil && keys.Tokens != nil {
				awaitIssuer(t, s)
			}
		}
		got := follower.call(t, "POST /api/tasks", `{"params":1}`, token)
		switch {
		case c.want == "" && got.status != 201, c.want != "" && !strings.Contains(got.body, c.want):
			t.Errorf("%s: %+v", name, got)
		case c.want == "":
			follower.call(t, "POST /api/tasks", `{"params":1}`).refused(t, wire.CodeUnauthorized)
			follower.call(t, "POST /api/tasks", `{"params":1}`, bearerOf(issuer.Token("eve", "staff"))).refused(t, wire.CodeForbidden)
		}
	}
}

func fewer(tokens *door.Tokens) *door.Tokens {
	tokens.Roles = tokens.Roles[1:]
	return tokens
}

// The trail, the audit file and the log have a subject's name, and nothing else of a token.
func TestTokens_Told(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	var log bytes.Buffer
	leader, node := setup(t, withTokens(tokensOf(issuer)))
	follower := followerOf(t, leader, withTokens(tokensOf(issuer)), func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Mutex: new(sync.Mutex)}) })
	awaitIssuer(t, leader, follower)
	path := filepath.Join(t.TempDir(), "audit")
	follower.core.cfg.Audit = openAudit(t, path, node)
	var by []string
	node.ProposeTo(func(cmd command.Command) {
		if c, ok := cmd.(command.SetType); ok {
			by = append(by, c.By)
		}
	})
	operator := issuer.Token("alice@example.org", "ops")
	follower.call(t, "PATCH /api/types/mail", `{"paused":true}`, bearerOf(operator))
	if len(by) != 1 || by[0] != "oidc:alice@example.org" {
		t.Errorf("the trail has %q", by)
	}
	if name, ok := leader.Operator(operator); name != "oidc:alice@example.org" || !ok {
		t.Errorf("the token is that of %q (%t)", name, ok)
	}
	if name, ok := leader.Operator(issuer.Token("alice", "workers")); ok {
		t.Errorf("an act of %q is told as an operator's", name)
	}
	refused := issuer.Token("bob\n\"x", "workers")
	follower.call(t, "GET /api/cluster", "", bearerOf(refused), "X-Request-ID: eyJa.b.c").refused(t, wire.CodeForbidden)
	waitFor(t, func() bool { return len(deniedLines(t, path)) == 1 })
	line := deniedLines(t, path)[0]
	if !strings.HasPrefix(line.Key, "oidc:bob__x~") || line.Status != 403 {
		t.Errorf("%+v", line)
	}
	for _, text := range []string{log.String(), fmt.Sprint(line)} {
		if strings.Contains(text, "eyJ") || strings.Contains(text, "workers\"") {
			t.Errorf("it has a token, or a claim: %s", text)
		}
	}
}

// Rate and shares are a subject's, whatever tokens it has.
func TestTokens_Subject(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	tokens := tokensOf(issuer)
	three := int64(3)
	tokens.Roles[1].RateLimitPerMinute = &three
	s, node := setup(t, withTokens(tokens), func(c *Config) { c.WaitsPerKey = 1 })
	awaitIssuer(t, s)
	token := func(subject, id string, groups ...string) string {
		claims := issuer.Claims(subject, groups...)
		claims["jti"] = id
		return bearerOf(issuer.Sign(claims))
	}
	for i := range 3 {
		s.call(t, "POST /api/tasks", `{"params":1}`, token("bob", fmt.Sprint(i), "senders")).good(t, 201)
	}
	f := s.call(t, "POST /api/tasks", `{"params":1}`, token("bob", "4", "senders")).refused(t, wire.CodeRateLimited)
	if !strings.Contains(f["error"].(string), "oidc:bob") {
		t.Errorf("%v", f)
	}
	reread(t, s)
	s.call(t, "POST /api/tasks", `{"params":1}`, token("bob", "5", "senders")).refused(t, wire.CodeRateLimited)
	s.call(t, "POST /api/tasks", `{"params":1}`, token("carol", "1", "senders")).good(t, 201)
	if n := scrape(t, s, `claimq_rate_limited_total{key="oidc:"}`); n != 2 {
		t.Errorf("%v requests over a rate", n)
	}
	waiting := waitsForEver(node)
	const claim = `{"worker_id":"w","wait_ms":60000}`
	answers := make(chan answer, 1)
	go func() { answers <- s.call(t, "POST /api/tasks/claim", claim, token("bob", "1", "workers")) }()
	<-waiting
	f = s.call(t, "POST /api/tasks/claim", claim, token("bob", "2", "workers")).refused(t, wire.CodeOverloaded)
	if f["reason"] != "key_waits" {
		t.Errorf("%v", f)
	}
	s.core.leave(nodes.ErrShuttingDown)
	<-answers
}

// What waits by a token ends with it: when it expires, when its group has another role, and
// when the issuer has its key no more. A change that is not about it leaves it alone.
func TestTokens_WaitEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lifetime time.Duration
		then     func(issuer *oidctest.Issuer, s *Server, tokens *door.Tokens)
		want     string
	}{
		"it expires": {1100 * time.Millisecond, nil, "The token has expired"},
		"its group may something else": {time.Minute, func(_ *oidctest.Issuer, _ *Server, tokens *door.Tokens) {
			tokens.Roles[4].Roles, tokens.Roles[4].Role = []string{"producer", "worker"}, ""
		}, "known no more"},
		"its group is none": {time.Minute, func(_ *oidctest.Issuer, _ *Server, tokens *door.Tokens) { tokens.Roles = tokens.Roles[:4] }, "known no more"},
		"its key is gone": {time.Minute, func(issuer *oidctest.Issuer, s *Server, _ *door.Tokens) {
			issuer.Rotate()
			s.call(t, "GET /api/tasks", "", bearerOf(issuer.Token("x", "ops")))
			waitFor(t, func() bool { return s.core.keys.Load().Tokens.Issuer.Stats(time.Now()).Fetched == 2 })
		}, "not signed with a key"},
		"its groups are another claim": {time.Minute, func(_ *oidctest.Issuer, _ *Server, tokens *door.Tokens) { tokens.GroupsClaim = "roles" }, "known no more"},
		"another issuer":               {time.Minute, func(_ *oidctest.Issuer, _ *Server, tokens *door.Tokens) { tokens.Issuer.Audience = "others" }, "cannot be checked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := oidctest.New(t)
			var settings changingTokens
			settings.set(tokensOf(issuer))
			s, node := setup(t, settings.use)
			awaitIssuer(t, s)
			waiting := waitsForEver(node)
			claims := issuer.Claims("bob", "workers")
			claims["exp"] = time.Now().Add(c.lifetime).Unix()
			token := bearerOf(issuer.Sign(claims))
			answers := make(chan answer, 1)
			go func() {
				answers <- s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","wait_ms":60000}`, token)
			}()
			<-waiting
			if c.then != nil {
				same := tokensOf(issuer)
				same.Roles = append(same.Roles, door.TokenRole{Group: "new", Key: door.Key{Field: "oidc.roles[6]", Role: "reader"}})
				settings.set(same)
				reread(t, s)
				select {
				case a := <-answers:
					t.Fatalf("a change that is not about it: %+v", a)
				default:
				}
				changed := tokensOf(issuer)
				c.then(issuer, s, changed)
				settings.set(changed)
				reread(t, s)
			}
			if got := <-answers; !strings.Contains(got.body, c.want) {
				t.Errorf("it ends with %+v", got)
			}
		})
	}
}

// What was let in before a reload, and begins to wait after it, does not go on by a token
// that the settings of now would not take.
func TestTokens_WaitBegins(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	var settings changingTokens
	settings.set(tokensOf(issuer))
	s, _ := setup(t, settings.use)
	awaitIssuer(t, s)
	k, err := s.core.keys.Load().Tokens.Find([]byte(issuer.Token("bob", "workers")), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	changed := tokensOf(issuer)
	changed.Issuer.Audience = "others"
	settings.set(changed)
	reread(t, s)
	awaitIssuer(t, s)
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	leave, bad := s.core.shares.Hold(door.ShareWait, k, netip.Addr{}, end)
	if bad != nil {
		t.Fatal(bad.Text)
	}
	defer leave()
	if ctx.Err() == nil {
		t.Error("it goes on by a token for another audience")
	}
}

// A token whose key the issuer has no more is not taken, though it was before.
func TestTokens_KeyWithdrawn(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	s, _ := setup(t, withTokens(tokensOf(issuer)))
	awaitIssuer(t, s)
	claims := issuer.Claims("alice", "ops")
	claims["iat"] = time.Now().Unix() - 30
	before := bearerOf(issuer.Sign(claims))
	s.call(t, "GET /api/tasks", "", before).good(t, 200)
	issuer.Rotate()
	after := bearerOf(issuer.Token("alice", "ops"))
	s.call(t, "GET /api/tasks", "", after).refused(t, wire.CodeOverloaded)
	waitFor(t, func() bool { return s.call(t, "GET /api/tasks", "", after).status == 200 })
	s.call(t, "GET /api/tasks", "", before).refused(t, wire.CodeUnauthorized)
}

// A stream of a token ends with it.
func TestTokens_StreamEnds(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	s, _ := setup(t, withTokens(tokensOf(issuer)))
	awaitIssuer(t, s)
	claims := issuer.Claims("bob", "workers")
	claims["exp"] = time.Now().Add(1100 * time.Millisecond).Unix()
	st := openStream(t, listen(t, s), "/api/events", bearerOf(issuer.Sign(claims)))
	st.begin()
	for {
		b, err := st.next()
		if err != nil {
			t.Fatal(err)
		}
		if b.event == "error" {
			if !strings.Contains(b.data, "The token has expired") {
				t.Errorf("it ends with %s", b.data)
			}
			return
		}
	}
}

// Mistakes are told at once, and a reload with some changes nothing.
func TestTokens_Mistakes(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	var settings changingTokens
	settings.set(tokensOf(issuer))
	s, _ := setup(t, settings.use)
	awaitIssuer(t, s)
	wrong := tokensOf(issuer)
	wrong.Roles = []door.TokenRole{{Key: door.Key{Field: "oidc.roles[0]"}}, {Group: "g", Key: door.Key{Field: "oidc.roles[1]", Role: "boss", TaskTypes: []string{"a b"}}}}
	settings.set(wrong)
	_, _, err := s.readKeys()
	for _, want := range []string{"oidc.roles[0].group", "oidc.roles[0].role", `oidc.roles[1].role is "boss"`, "oidc.roles[1].task_types[0]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not have %s", err, want)
		}
	}
	wrong = tokensOf(issuer)
	wrong.Issuer.Algorithms = []string{"HS256"}
	settings.set(wrong)
	if _, _, err := s.readKeys(); err == nil || !strings.Contains(err.Error(), "HS256") {
		t.Error(err)
	}
	s.call(t, "GET /api/tasks", "", bearerOf(issuer.Token("alice", "ops"))).good(t, 200)
	settings.set(nil)
	if _, _, err := s.readKeys(); err == nil {
		t.Error("a reload opened the server")
	}
	s.call(t, "GET /api/tasks", "").refused(t, wire.CodeUnauthorized)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// A large token has the room of headers that it needs.
func TestTokens_Large(t *testing.T) {
	t.Parallel()
	issuer, leader, _ := setupTokens(t)
	addr := listen(t, leader)
	groups := []string{"ops"}
	for len(issuer.Token("alice", groups...)) < oidc.TokenBytesMax-200 {
		groups = append(groups, strings.Repeat("g", 100))
	}
	token := issuer.Token("alice", groups...)
	got := raw(t, addr, "GET /api/tasks HTTP/1.1\r\nHost: localhost\r\n"+bearerOf(token)+"\r\n\r\n")
	if got.status != 200 {
		t.Errorf("a token of %d bytes: %+v", len(token), got)
	}
}
