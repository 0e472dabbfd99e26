package peer

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claimq/claimq/cluster/peer/peertest"
)

// An exchange of the join key takes rounds over all nodes, one after the other. In the
// middle of each round all nodes accept each other.
func TestHandshake_joinKeyRounds(t *testing.T) {
	t.Parallel()
	old, next := testKey, testOtherKey
	for name, rounds := range map[string][]JoinKeys{
		"another key":      {{old}, {old, next}, {next, old}, {next}},
		"a first key":      {nil, {nil, next}, {next, nil}, {next}},
		"no key any more":  {{old}, {old, nil}, {nil, old}, {nil}, nil},
		"three at a time":  {{old, next, nil}, {nil, old, next}, {next, nil, old}},
		"with those of no": {{nil}, nil, {nil, old}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := 1; i < len(rounds); i++ {
				for _, sides := range [][2]JoinKeys{{rounds[i-1], rounds[i]}, {rounds[i], rounds[i-1]}, {rounds[i], rounds[i]}} {
					c := agreeing()
					c.dialer.keys, c.acceptor.keys = sides[0], sides[1]
					if _, _, dialErr, acceptErr := c.shake(t); dialErr != nil || acceptErr != nil {
						t.Errorf("%q dials %q: %v; %v", sides[0], sides[1], dialErr, acceptErr)
					}
				}
			}
		})
	}
}

// A key that a node only accepts, and a missing key where one is required, open nothing.
func TestHandshake_joinKeyRefused(t *testing.T) {
	t.Parallel()
	old, next := testKey, testOtherKey
	third := []byte("a third key of at least 32 characters")
	for name, tc := range map[string]struct {
		dialer, acceptor JoinKeys
		want             string
	}{
		"a round left out":       {JoinKeys{old}, JoinKeys{next, old}, "does not have this node's join key"},
		"an old key":             {JoinKeys{old}, JoinKeys{next}, "another join key"},
		"an unknown key":         {JoinKeys{third}, JoinKeys{old, next, nil}, "another join key"},
		"none":                   {nil, JoinKeys{old, next}, "has a join key"},
		"none, first of several": {JoinKeys{nil, old}, JoinKeys{old, next}, "has a join key"},
		"a key, where none is":   {JoinKeys{old, nil}, JoinKeys{nil}, "has no join key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := agreeing()
			c.dialer.keys, c.acceptor.keys = tc.dialer, tc.acceptor
			_, _, dialErr, acceptErr := c.shake(t)
			if !errors.Is(dialErr, ErrRefused) || !strings.Contains(dialErr.Error()+fmt.Sprint(acceptErr), tc.want) {
				t.Errorf("the dialer got %v, the acceptor %v, want %q", dialErr, acceptErr, tc.want)
			}
		})
	}
}

// A side that claims to show a key but shows none is refused, and so is the reverse.
func TestJoinKeys_showed(t *testing.T) {
	t.Parallel()
	said := []byte("said")
	keys := JoinKeys{testKey, nil}
	for name, tc := range map[string]struct {
		mac  []byte
		some bool
		want bool
	}{
		"a key":                      {macOf(testKey, said), true, true},
		"none":                       {macOf(nil, said), false, true},
		"none, said to be a key":     {macOf(nil, said), true, false},
		"a key, said to be none":     {macOf(testKey, said), false, false},
		"the key, of something else": {macOf(testKey, []byte("other")), true, false},
	} {
		if got := keys.showed(tc.mac, tc.some, said); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// Keys that are exchanged while the port is open apply from the next connection on; an open
// connection stays.
func TestPort_joinKeysReloaded(t *testing.T) {
	t.Parallel()
	var keys [2]atomic.Pointer[JoinKeys]
	var ports [2]*Port
	for i := range ports {
		keys[i].Store(&JoinKeys{testKey})
		ports[i] = openTestPort(t, fmt.Sprintf("n%d", i+1), func(c *Config) { c.JoinKeys = func() JoinKeys { return *keys[i].Load() } })
		ports[i].Handle("any", echoCall)
	}
	call := func() error {
		_, err := ports[0].Call(t.Context(), ports[1].Addr(), "any", []byte("x"))
		return err
	}
	again := func() error { // over a new connection
		conn, err := ports[0].dial(t.Context(), ports[1].Addr(), PurposeHTTP, peertest.UUID("n2"))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for _, round := range []JoinKeys{{testKey}, {testKey, testOtherKey}, {testOtherKey, testKey}, {testOtherKey}} {
		for i := range keys {
			keys[i].Store(&round)
			if err := errors.Join(call(), again()); err != nil {
				t.Fatalf("with %q on %d nodes: %v", round, i+1, err)
			}
		}
	}
	keys[0].Store(&JoinKeys{testKey})
	if err := again(); !errors.Is(err, ErrRefused) {
		t.Errorf("with the old key: %v", err)
	}
	if err := call(); err != nil {
		t.Errorf("over the connection that was open: %v", err)
	}
}
