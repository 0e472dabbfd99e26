package api

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/wire"
)

func (a answer) keys(t *testing.T) wire.Keys {
	t.Helper()
	a.good(t, 200)
	var keys wire.Keys
	if err := json.Unmarshal([]byte(a.body), &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

// GET /api/keys shows everything about each key except the key itself and its hash.
func TestKeyList(t *testing.T) {
	t.Parallel()
	at := time.Date(2999, time.January, 31, 12, 0, 0, 0, time.UTC)
	s, _ := setup(t, withKeys(
		testKey("operator"), expiring(testKey("reader", "b"), at),
		fromAddresses(ofTypes(limited(ofRoles(testKey("a"), "worker", "producer"), 7), "mail", "bill"), "10.0.0.0/8", "192.0.2.7/32"),
	))
	begun := time.Now()
	got := s.callFrom(t, "192.0.2.9", "GET /api/keys", "", with("operator"))
	keys := got.keys(t)
	if strings.Contains(got.body, keyHash("a")) || strings.Contains(got.body, "secret-of") {
		t.Errorf("a key or its hash: %s", got.body)
	}
	if keys.NodeID != "n1" || keys.Since.After(begun) || begun.Sub(keys.Since) > time.Minute || keys.Next != nil {
		t.Errorf("%+v", keys)
	}
	used := keys.Keys[2].LastUsedAt
	if used == nil || used.Before(begun.Truncate(time.Millisecond)) || used.After(time.Now()) {
		t.Errorf("the operator's key was used at %v", used)
	}
	keys.Keys[2].LastUsedAt = nil
	none, from := []string{}, "192.0.2.9"
	if diff := cmp.Diff([]wire.Key{
		{Name: "a", Roles: []string{"producer", "worker"}, TaskTypes: []string{"bill", "mail"}, RateLimitPerMinute: 7, Addresses: []string{"10.0.0.0/8", "192.0.2.7"}},
		{Name: "b", Roles: []string{"reader"}, TaskTypes: none, ExpiresAt: &at, Addresses: none},
		{Name: "operator", Roles: []string{"operator"}, TaskTypes: none, Addresses: none, LastUsedFrom: &from},
	}, keys.Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// Pages follow each other, wherever they begin.
func TestKeyList_pages(t *testing.T) {
	t.Parallel()
	all := []door.Key{testKey("operator")}
	var want []string
	for i := range 150 {
		all = append(all, testKey("reader", fmt.Sprintf("key-%03d", i)))
		want = append(want, fmt.Sprintf("key-%03d", i))
	}
	s, _ := setup(t, withKeys(all...))
	want = append(want, "operator")
	for _, limit := range []string{"", "&limit=1", "&limit=75", "&limit=151", "&limit=1000"} {
		var got []string
		for target := "GET /api/keys?" + limit; target != "" && len(got) <= len(want); {
			page := s.call(t, target, "", with("operator")).keys(t)
			if len(page.Keys) == 0 {
				t.Errorf("%q: an empty page", limit)
			}
			for _, k := range page.Keys {
				got = append(got, k.Name)
			}
			target = ""
			if page.Next != nil {
				target = "GET /api/keys?after=" + *page.Next + limit
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", limit, diff)
		}
	}
	if page := s.call(t, "GET /api/keys?after=key-148x", "", with("operator")).keys(t); len(page.Keys) != 2 {
		t.Errorf("behind a key that is gone: %+v", page)
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "after=", "after=a%20b", "name=a", "consistency=x"} {
		s.call(t, "GET /api/keys?"+query, "", with("operator")).refused(t, wire.CodeInvalidRequest)
	}
	open, _ := setup(t)
	if page := open.call(t, "GET /api/keys", "").keys(t); len(page.Keys) != 0 || page.Next != nil {
		t.Errorf("of an open server: %+v", page)
	}
}

// Uses are recorded by the node that the client is connected to, to the second. A refused key does not count as used,
// and a reload keeps the record.
func TestKeyList_lastUse(t *testing.T) {
	t.Parallel()
	keys := append(allRoles(), expiring(testKey("reader", "over"), time.Now().Add(-time.Hour)), fromAddresses(testKey("reader", "far"), "10.0.0.0/8"))
	leader, follower, _ := setupKeys(t, keys...)
	last := func(s *Server, name string) string {
		t.Helper()
		for _, k := range s.call(t, "GET /api/keys", "", with("operator")).keys(t).Keys {
			if k.Name == name && k.LastUsedFrom != nil {
				return *k.LastUsedFrom
			}
		}
		return ""
	}
	follower.callFrom(t, "192.0.2.1", "POST /api/tasks", `{"params":1}`, with("producer")).good(t, 201)
	follower.callFrom(t, "192.0.2.2", "POST /api/tasks", `{"params":1}`, with("worker")).refused(t, wire.CodeForbidden)
	follower.callFrom(t, "192.0.2.3", "GET /api/stats", "", with("over")).refused(t, wire.CodeUnauthorized)
	follower.callFrom(t, "192.0.2.4", "GET /api/stats", "", with("far")).refused(t, wire.CodeForbidden)
	follower.HangUp()
	for name, want := range map[string]string{"producer": "192.0.2.1", "worker": "192.0.2.2", "over": "", "far": "", "reader": ""} {
		if got := last(follower, name); got != want {
			t.Errorf("%s was used at the follower from %q, want %q", name, got, want)
		}
		if got := last(leader, name); got != "" {
			t.Errorf("%s was used at the leader from %q", name, got)
		}
	}
	// If the node has no keys, the leader records the use.
	leader, follower = setupBoth(t, allRoles(), nil)
	follower.callFrom(t, "192.0.2.5", "POST /api/tasks", `{"params":1}`, with("producer")).good(t, 201)
	if got := last(leader, "producer"); got != "192.0.2.5" {
		t.Errorf("by way of a node without keys it was used from %q", got)
	}
}

func TestAPIKey_used(t *testing.T) {
	t.Parallel()
	var k door.Caller
	now, here, there := time.Now(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	k.Used(now, here)
	k.Used(now.Add(door.KeyUseInterval-1), there)
	if last := k.Last.Load(); !last.At.Equal(now) || last.From != here {
		t.Errorf("within a second: %+v", last)
	}
	k.Used(now.Add(door.KeyUseInterval), there)
	if last := k.Last.Load(); !last.At.Equal(now.Add(door.KeyUseInterval)) || last.From != there {
		t.Errorf("after a second: %+v", last)
	}
}
