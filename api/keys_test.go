package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
)

// keyText returns the key for a name: long enough to be valid, and easy to find where it must not appear.
func keyText(name string) string { return "claimq_secret-of-" + name }

func keyHash(name string) string {
	sum := sha256.Sum256([]byte(keyText(name)))
	return hex.EncodeToString(sum[:])
}

func unlimited(k door.Key) door.Key {
	k.RateLimitPerMinute = new(int64)
	return k
}

func limited(k door.Key, perMinute int64) door.Key {
	k.RateLimitPerMinute = &perMinute
	return k
}

func ofTypes(k door.Key, types ...string) door.Key {
	k.TaskTypes = types
	return k
}

func ofRoles(k door.Key, roles ...string) door.Key {
	k.Role, k.Roles = "", roles
	return k
}

// testKey is a key without a rate, named after its role unless name is given.
func testKey(role string, name ...string) door.Key {
	n := role
	if len(name) > 0 {
		n = name[0]
	}
	return unlimited(door.Key{Field: "keys[?]", Name: n, Role: role, SHA256: keyHash(n)})
}

// allRoles returns a key of each role, named after it.
func allRoles() []door.Key {
	return []door.Key{testKey("reader"), testKey("producer"), testKey("worker"), testKey("operator")}
}

// withKeys gives a server keys.
func withKeys(keys ...door.Key) func(*Config) {
	for i := range keys {
		keys[i].Field = fmt.Sprintf("keys[%d]", i)
	}
	return func(c *Config) { c.Keys = func() ([]door.Key, error) { return keys, nil } }
}

// with returns the header that sends the key of that name.
func with(name string) string { return "X-API-Key: " + keyText(name) }

// setupKeys returns a leader and a follower that forwards to it, both with the keys.
func setupKeys(t *testing.T, keys ...door.Key) (leader, follower *Server, node *nodetest.Node) {
	t.Helper()
	leader, follower = setupBoth(t, keys, keys)
	return leader, follower, leader.core.node.(*nodetest.Node)
}

// setupBoth is setupKeys with different keys for each node.
func setupBoth(t *testing.T, ofLeader, ofFollower []door.Key) (leader, follower *Server) {
	t.Helper()
	leader, _ = setup(t, withKeys(ofLeader...))
	return leader, followerOf(t, leader, withKeys(ofFollower...))
}

// followerOf returns a follower that forwards requests to the leader.
func followerOf(t *testing.T, leader *Server, options ...func(*Config)) (follower *Server) {
	t.Helper()
	follower, other := setup(t, options...)
	other.Follower, other.LeaderAddr = true, "http://10.0.0.7:7400"
	passesTo(other, leader)
	return follower
}

// A key is required, in one of two headers, and everything that is not a key of the server is refused in the same
// way.
func TestKeys_Unauthorized(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupKeys(t, allRoles()...)
	for _, s := range []*Server{leader, follower} {
		for _, c := range []struct {
			name, text string
			headers    []string
		}{
			{"none", "Missing API key", nil},
			{"an empty one", "Missing API key", []string{"X-API-Key: "}},
			{"unknown", "Unknown API key", []string{with("nobody")}},
			{"a hash for a key", "Unknown API key", []string{"X-API-Key: " + keyHash("operator")}},
			{"a part of one", "Unknown API key", []string{with("operator")[:30]}},
			{"one with more", "Unknown API key", []string{with("operator") + "x"}},
			{"a basic authorization", "The API key is malformed", []string{"Authorization: Basic b3BlcmF0b3I6eA=="}},
			{"bearer without a key", "The API key is malformed", []string{"Authorization: Bearer"}},
			{"a space inside", "The API key is malformed", []string{"X-API-Key: a b"}},
			{"a byte beyond ASCII", "The API key is malformed", []string{"X-API-Key: \xff"}},
			{"too long", "The API key is malformed", []string{"X-API-Key: " + strings.Repeat("k", door.KeyBytesMax+1)}},
			{"a wrong one beside a right one", "Unknown API key", []string{with("nobody"), "Authorization: Bearer " + keyText("operator")}},
		} {
			for _, target := range []string{"GET /api/tasks", "POST /api/tasks", "GET /metrics", "GET /api/no/such/path", "PUT /api/tasks", "POST /api/batch"} {
				got := s.call(t, target, goodBodies[target], c.headers...)
				f := got.refused(t, wire.CodeUnauthorized)
				if f["error"] != c.text || got.header["Www-Authenticate"] != `Bearer realm="claimq"` {
					t.Errorf("%s, %s: %+v", c.name, target, got)
				}
				if strings.Contains(got.body, "secret-of") {
					t.Errorf("%s, %s: the answer has the key: %s", c.name, target, got.body)
				}
			}
		}
		for _, header := range []string{with("reader"), "x-api-key: " + keyText("reader"), "Authorization: Bearer " + keyText("reader"), "authorization: bearer " + keyText("reader")} {
			s.call(t, "GET /api/tasks", "", header).good(t, 200)
		}
		for _, target := range []string{"GET /healthz", "GET /readyz", "GET /openapi.json", "OPTIONS /api/tasks"} {
			if got := s.call(t, target, ""); got.status >= 300 {
				t.Errorf("%s without a key: %+v", target, got)
			}
		}
	}
}

// An open server accepts any key, because clients may have one.
func TestKeys_Open(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	if !s.Open() {
		t.Error("a server without keys is not open")
	}
	got := s.call(t, "GET /api/stats", "", with("nobody"))
	got.good(t, 200)
	if got.header["Ratelimit-Limit"] != "" {
		t.Errorf("a limit in open mode: %v", got.header)
	}
}

// With keys the Host does not matter, because a page that an attacker's name leads to has no key.
func TestKeys_Host(t *testing.T) {
	t.Parallel()
	s, _, _ := setupKeys(t, allRoles()...)
	s.call(t, "GET /api/stats", "", with("reader"), "Host: evil.example").good(t, 200)
	s.call(t, "GET /api/stats", "", "Host: evil.example").refused(t, wire.CodeUnauthorized)
	s.call(t, "GET /api/stats", "", with("reader"), "Origin: http://evil.example").refused(t, wire.CodeForbidden)
}

// Every mistake is named by its field. A hash is never repeated, because it may be the key itself.
func TestCheckKeys(t *testing.T) {
	t.Parallel()
	good := testKey("reader")
	change := func(fn func(k *door.Key)) door.Key {
		k := good
		fn(&k)
		return k
	}
	n := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		name string
		keys []door.Key
		want []string // empty: they are valid
	}{
		{"right", []door.Key{good, testKey("worker")}, nil},
		{"upper case", []door.Key{change(func(k *door.Key) { k.SHA256 = strings.ToUpper(k.SHA256) })}, nil},
		{"names", []door.Key{change(func(k *door.Key) { k.Name = "a b" }), change(func(k *door.Key) { k.Name = "" }), change(func(k *door.Key) { k.Name = strings.Repeat("n", 65) })}, []string{"keys[0].name", "keys[1].name", "keys[2].name"}},
		{"a name twice", []door.Key{good, change(func(k *door.Key) { k.SHA256 = keyHash("other") })}, []string{`keys[1].name is "reader", the name of keys[0] too`}},
		{"a hash twice", []door.Key{good, change(func(k *door.Key) { k.Name = "other" })}, []string{"keys[1].key_sha256 is the same as in keys[0]"}},
		{"roles", []door.Key{good, testKey("producer"), change(func(k *door.Key) { k.Role = "admin" })}, []string{`keys[2].role is "admin": it must be reader, producer, worker or operator`}},
		{"several roles", []door.Key{ofRoles(good, "reader", "producer", "worker")}, nil},
		{"a wrong one of several roles", []door.Key{ofRoles(good, "reader", "king")}, []string{`keys[0].roles[1] is "king": it must be`}},
		{"a role twice", []door.Key{ofRoles(good, "reader", "reader")}, []string{`keys[0].roles[1] is "reader", which is there already`}},
		{"role and roles", []door.Key{change(func(k *door.Key) { k.Roles = []string{"reader"} })}, []string{"keys[0].role and roles are both given"}},
		{"no role", []door.Key{change(func(k *door.Key) { k.Role = "" })}, []string{`keys[0].role`}},
		{"the key for its hash", []door.Key{change(func(k *door.Key) { k.SHA256 = keyText("reader") })}, []string{"keys[0].key_sha256 is not the SHA-256 of a key: it must be 64 hex digits"}},
		{"short", []door.Key{change(func(k *door.Key) { k.SHA256 = k.SHA256[:62] })}, []string{"keys[0].key_sha256"}},
		{"long", []door.Key{change(func(k *door.Key) { k.SHA256 += "00" })}, []string{"keys[0].key_sha256"}},
		{"rates", []door.Key{change(func(k *door.Key) { k.RateLimitPerMinute = n(-1) }), change(func(k *door.Key) { k.RateLimitPerMinute = n(door.KeyRateMax + 1) })}, []string{"keys[0].rate_limit_per_minute is -1", "keys[1].rate_limit_per_minute"}},
		{"types", []door.Key{ofTypes(good, "a", "b c")}, []string{`keys[0].task_types[1] is "b c"`}},
		{"too many types", []door.Key{ofTypes(good, strings.Split(strings.Repeat(strings.Repeat("t", 127)+",", 17)+"t", ",")...)}, []string{"keys[0].task_types are"}},
		{"too many addresses", []door.Key{fromAddresses(good, strings.Split(strings.Repeat("10.0.0.1/32 ", door.KeyAddressesMax)+"10.0.0.1/32", " ")...)}, []string{"keys[0].addresses are 65"}},
		{"two mistakes of one", []door.Key{change(func(k *door.Key) { k.Name, k.Role = "", "" })}, []string{"keys[0].name", "keys[0].role"}},
		{"too many", make([]door.Key, door.KeysMax+1), []string{"at most 10000 are allowed"}},
	} {
		for i := range c.keys {
			c.keys[i].Field = fmt.Sprintf("keys[%d]", i)
		}
		err := door.CheckKeys(c.keys)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", c.name, err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "secret-of") {
			t.Errorf("%s: the error has the key: %v", c.name, err)
		}
	}
}

// TestKeys_reloadsShare ensures that reloads which come while one is under way share the next one, and that each reads
// what was there when it came.
func TestKeys_reloadsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads, goOn := 0, make(chan struct{})
		keys := allRoles()
		s, _ := setup(t, func(c *Config) {
			c.Keys = func() ([]door.Key, error) {
				reads++
				read := slices.Clone(keys)
				if reads > 1 { // the first was at the start
					<-goOn
				}
				return read, nil
			}
		})
		var calls sync.WaitGroup
		ask := func(count int, want string) {
			for range count {
				calls.Go(func() {
					if got := s.call(t, "POST /api/reload", "", with("operator")); got.status != 200 || !strings.Contains(got.body, want) {
						t.Errorf("%d %s, want %s", got.status, got.body, want)
					}
				})
			}
			synctest.Wait()
		}
		ask(1, fmt.Sprintf(`"keys":%d}`, len(keys)))
		keys = append(keys, testKey("worker", "another"))
		ask(50, fmt.Sprintf(`"keys":%d}`, len(keys)))
		close(goOn)
		calls.Wait()
		if reads != 3 {
			t.Errorf("the keys were read %d times, want 3", reads)
		}
	})
}

// TestKeys_reloadTakesLong ensures that a reload whose keys cannot be read in time is answered.
func TestKeys_reloadTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read := make(chan []door.Key, 1)
		read <- allRoles()
		s, _ := setup(t, func(c *Config) { c.Keys = func() ([]door.Key, error) { return <-read, nil } })
		s.call(t, "POST /api/reload", "", with("operator")).refused(t, wire.CodeOutcomeUnknown)
		read <- allRoles()
		synctest.Wait()
	})
}

// A reload replaces the keys at once. A configuration with a mistake, or without keys, leaves the existing ones.
func TestReload(t *testing.T) {
	t.Parallel()
	var keys []door.Key
	var broken error
	s, node := setup(t, func(c *Config) { c.Keys = func() ([]door.Key, error) { return keys, broken } })
	reload := func(headers ...string) answer { return s.call(t, "POST /api/reload", "", headers...) }
	if got := reload(); got.body != `{"success":true,"node_id":"n1","keys":0}` || got.status != 200 {
		t.Fatalf("of an open server: %+v", got)
	}
	keys = allRoles()
	if got := reload(); got.status != 200 || s.Open() {
		t.Fatalf("the first keys: %+v, open %v", got, s.Open())
	}
	reload().refused(t, wire.CodeUnauthorized)
	reload(with("worker")).refused(t, wire.CodeForbidden)

	keys = append(allRoles(), testKey("reader", "new"))
	s.call(t, "GET /api/stats", "", with("new")).refused(t, wire.CodeUnauthorized)
	if got := reload(with("operator")); got.body != `{"success":true,"node_id":"n1","keys":5}` {
		t.Errorf("a key more: %+v", got)
	}
	s.call(t, "GET /api/stats", "", with("new")).good(t, 200)
	s.call(t, "GET /api/stats", "", with("reader")).good(t, 200)

	for name, spoil := range map[string]func(){
		"an unreadable file": func() { broken = errors.New("read config file: line 3 is no YAML") },
		"a mistake":          func() { keys = []door.Key{{Field: "keys[0]", Name: "x", Role: "king", SHA256: keyText("new")}} },
		"no key at all":      func() { keys = nil },
	} {
		keys, broken = nil, nil
		spoil()
		f := reload(with("operator")).refused(t, wire.CodeInvalidRequest)
		if !strings.HasPrefix(f["error"].(string), "The keys were not reloaded: ") || strings.Contains(f["error"].(string), "secret-of") {
			t.Errorf("%s: %v", name, f)
		}
		s.HangUp()
		s.call(t, "GET /api/stats", "", with("new")).good(t, 200)
	}

	keys, broken = allRoles(), nil
	s.HangUp()
	s.call(t, "GET /api/stats", "", with("new")).refused(t, wire.CodeUnauthorized)
	s.call(t, "GET /api/stats", "", with("reader")).good(t, 200)
	s.HangUp() // without a change, so nothing is recorded
	var told []command.Tell
	for _, cmd := range node.Proposed {
		if tell, ok := cmd.(command.Tell); ok {
			told = append(told, tell)
		}
	}
	want := []command.Tell{
		{Kind: event.KeysReloaded, What: "n1: 0 keys"},
		{Kind: event.KeysReloaded, What: "n1: 4 keys"},
		{Kind: event.KeysReloaded, What: "n1: 5 keys", By: "operator"},
		{Kind: event.KeysReloaded, What: "n1: 4 keys"},
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if a := s.call(t, "POST /api/reload", `{"node_id":"n2"}`, with("operator")); a.status != 400 {
		t.Errorf("a body: %+v", a)
	}
}

// A server cannot be made from a configuration with a mistake.
func TestNew_KeysWithMistake(t *testing.T) {
	t.Parallel()
	cfg := Config{Node: nodetest.New()}
	withKeys(door.Key{Name: "a", Role: "b", SHA256: "c"})(&cfg)
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "keys[0].role") {
		t.Errorf("New: %v", err)
	}
}

// A stream ends once its key is removed, before any later event; a stream of another key continues.
func TestReload_Streams(t *testing.T) {
	t.Parallel()
	keys := []door.Key{testKey("operator"), testKey("reader"), testKey("reader", "leaver")}
	s, _ := setup(t, func(c *Config) { c.Keys = func() ([]door.Key, error) { return keys, nil } })
	addr := listen(t, s)
	stays := openStream(t, addr, "/api/events", with("reader"))
	stays.begin()
	ends := openStream(t, addr, "/api/events", with("leaver"))
	ends.begin()
	keys = keys[:2]
	s.HangUp()
	if b, err := ends.next(); err != nil || b.event != "error" || !strings.Contains(b.data, `"unauthorized"`) {
		t.Errorf("the stream of a key that was removed: %+v, %v", b, err)
	}
	if b, err := ends.next(); err == nil {
		t.Errorf("it goes on: %+v", b)
	}
	if events := stays.events(2); events[1].Event != "keys_reloaded" { // after the initial level
		t.Errorf("the other stream: %+v", events)
	}
}
