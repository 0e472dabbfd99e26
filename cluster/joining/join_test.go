package joining

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/cluster/peer/porttest"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

func testRecord() fsm.NodeRecord {
	return fsm.NodeRecord{UUID: "u4", NodeID: "n4", PeerAddr: "host4:7401", HTTPAddr: "http://host4:7400", Version: "v0.1.0", Level: 1}
}

func recordHello(r fsm.NodeRecord) peer.Hello {
	return peer.Hello{UUID: r.UUID, NodeID: r.NodeID, FeatureLevel: r.Level, Version: r.Version}
}

// startJoinNode starts a member that answers join requests.
func startJoinNode(network *fakeNetwork, addr, leader string, admit func(fsm.NodeRecord) (string, error)) {
	ServeJoins(network.open(addr, peer.Hello{}), JoinConfig{
		Leader:  func() (string, bool) { return leader, leader == addr },
		Admit:   func(_ context.Context, r Request) (string, error) { return admit(r.NodeRecord) },
		Members: testMembers,
		Logger:  hclog.NewNullLogger(),
	})
}

// testMembers returns a leader's members. The leader's own address differs from the one
// that was asked.
func testMembers() []storage.Introducer {
	return []storage.Introducer{{UUID: peertest.UUID("n1"), PeerAddr: "elsewhere:7401"}, {UUID: peertest.UUID("n2"), PeerAddr: "host2:7401"}}
}

func mustNotAdmit(t *testing.T) func(fsm.NodeRecord) (string, error) {
	return func(fsm.NodeRecord) (string, error) {
		t.Error("a follower admitted a node")
		return "", errors.New("not the leader")
	}
}

func TestRequestJoin_throughFollower(t *testing.T) {
	t.Parallel()
	network := newFakeNetwork()
	var admitted fsm.NodeRecord
	startJoinNode(network, "host1:7401", "host1:7401", func(r fsm.NodeRecord) (string, error) { admitted = r; return "c1", nil })
	startJoinNode(network, "host2:7401", "host1:7401", mustNotAdmit(t))
	port := network.open("host4:7401", recordHello(testRecord()))

	got, err := Join(t.Context(), port, []string{"host9:7401", "host2:7401"}, Request{NodeRecord: testRecord()}, nil, hclog.NewNullLogger())
	want := Joined{ClusterID: "c1", Members: append([]storage.Introducer{{PeerAddr: "host1:7401"}}, testMembers()...)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v, %s", err, diff)
	}
	if admitted != testRecord() {
		t.Errorf("the leader got %+v", admitted)
	}
}

// It tries again while there is no leader, or the leader cannot admit it now.
func TestRequestJoin_triesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newFakeNetwork()
		start := time.Now()
		var calls atomic.Int32
		ServeJoins(network.open("host1:7401", peer.Hello{}), JoinConfig{
			Leader: func() (string, bool) {
				switch elapsed := time.Since(start); {
				case elapsed < 10*time.Second:
					return "", false
				case elapsed < 20*time.Second:
					return "host2:7401", false // points back
				default:
					return "host1:7401", true
				}
			},
			Admit: func(context.Context, Request) (string, error) {
				if calls.Add(1) < 3 {
					return "", nodes.ErrOutcomeUnknown
				}
				return "c1", nil
			},
			Members: testMembers,
			Logger:  hclog.NewNullLogger(),
		})
		startJoinNode(network, "host2:7401", "host1:7401", mustNotAdmit(t))
		port := network.open("host4:7401", recordHello(testRecord()))
		got, err := Join(t.Context(), port, []string{"host1:7401"}, Request{NodeRecord: testRecord()}, nil, hclog.NewNullLogger())
		if err != nil || got.ClusterID != "c1" || calls.Load() != 3 {
			t.Fatalf("got %+v, %v after %d calls", got, err, calls.Load())
		}
	})
}

func TestRequestJoin_endsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newFakeNetwork()
		startJoinNode(network, "host1:7401", "", mustNotAdmit(t))
		port := network.open("host4:7401", recordHello(testRecord()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Join(ctx, port, []string{"host1:7401", "host2:7401"}, Request{NodeRecord: testRecord()}, nil, hclog.NewNullLogger())
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no leader is known here") || !strings.Contains(err.Error(), "connection refused") {
			t.Fatalf("got %v", err)
		}
	})
	if _, err := Join(t.Context(), nil, nil, Request{NodeRecord: testRecord()}, nil, nil); err == nil {
		t.Error("joined through nobody")
	}
}

// A refusal is final, and says what to do.
func TestRequestJoin_refused(t *testing.T) {
	t.Parallel()
	members := []fsm.NodeRecord{{UUID: "u1", NodeID: "n1", PeerAddr: "host1:7401"}, {UUID: "u3", NodeID: "n3", PeerAddr: "host3:7401"}}
	cases := map[string]struct {
		change func(*fsm.NodeRecord)
		want   string // "" = admitted
	}{
		"a new node":                {func(*fsm.NodeRecord) {}, ""},
		"a member again":            {func(r *fsm.NodeRecord) { r.UUID, r.NodeID = "u3", "n3" }, ""},
		"a member's name":           {func(r *fsm.NodeRecord) { r.NodeID = "n3" }, "claimq cluster remove n3"},
		"a member's address":        {func(r *fsm.NodeRecord) { r.PeerAddr = "host3:7401" }, `peer address host3:7401 belongs to member "n3"`},
		"a member's identity":       {func(r *fsm.NodeRecord) { r.UUID = "u3" }, "is a copy of its folder"},
		"a version that is too old": {func(r *fsm.NodeRecord) { r.Level = 0 }, "knows feature level 0, the cluster is at 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network := newFakeNetwork()
			startJoinNode(network, "host1:7401", "host1:7401", func(r fsm.NodeRecord) (string, error) { return "c1", Check(r, members, 1) })
			record := testRecord()
			tc.change(&record)
			port := network.open(record.PeerAddr, recordHello(record))
			got, err := Join(t.Context(), port, []string{"host1:7401"}, Request{NodeRecord: record}, nil, hclog.NewNullLogger())
			if tc.want == "" {
				if err != nil || got.ClusterID != "c1" {
					t.Fatalf("got %+v, %v", got, err)
				}
				return
			}
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}

// A node can only ask for itself.
func TestAnswerJoin_forSomebodyElse(t *testing.T) {
	t.Parallel()
	cfg := JoinConfig{Leader: func() (string, bool) { return "host1:7401", true }, Admit: func(context.Context, Request) (string, error) { return "c1", nil }, Members: testMembers, Logger: hclog.NewNullLogger()}
	record := testRecord()
	noAddr := record
	noAddr.PeerAddr = ""
	for name, tc := range map[string]struct {
		from peer.Hello
		body any
	}{
		"another identity": {peer.Hello{UUID: "u9", NodeID: "n4"}, record},
		"another name":     {peer.Hello{UUID: "u4", NodeID: "n9"}, record},
		"no address":       {recordHello(record), noAddr},
		"no record":        {recordHello(record), "nonsense"},
	} {
		body, err := json.Marshal(tc.body)
		if err != nil {
			t.Fatal(err)
		}
		if got := answerJoin(t.Context(), cfg, &peer.RefusalLog{}, tc.from, body); got.Refused == "" || got.ClusterID != "" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// Repeated requests of a node to join do not fill the log of the node that refuses.
func TestServeJoins_refusedOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		network := newFakeNetwork()
		ServeJoins(network.open("host1:7401", peer.Hello{}), JoinConfig{
			Leader: func() (string, bool) { return "host1:7401", true },
			Admit:  func(context.Context, Request) (string, error) { return "", &Refusal{Text: "not this one"} },
			Logger: hclog.New(&hclog.LoggerOptions{Output: &log}),
		})
		record := testRecord()
		port := network.open("host4:7401", recordHello(record))
		ask := func() {
			_, err := Join(t.Context(), port, []string{"host1:7401"}, Request{NodeRecord: record}, nil, hclog.NewNullLogger())
			if !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
		}
		for range 100 {
			ask()
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "refused a node that wants to join: node_id=n4") || !strings.Contains(got, "not this one") {
			t.Errorf("the log has %q", got)
		}
		<-time.After(peer.RefusalLogInterval)
		ask()
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "more_not_logged=99") {
			t.Errorf("then the log has %q", got)
		}
	})
}

// The same over real ports.
func TestRequestJoin_overPeerPorts(t *testing.T) {
	t.Parallel()
	leader, follower := porttest.Open(t, "n1"), porttest.Open(t, "n2")
	newcomer := porttest.Open(t, "n4")
	record := testRecord()
	record.UUID = peertest.UUID("n4")
	for _, port := range []*peer.Port{leader, follower} {
		ServeJoins(port, JoinConfig{
			Leader: func() (string, bool) { return leader.Addr(), port == leader },
			Admit: func(_ context.Context, r Request) (string, error) {
				return "c1", Check(r.NodeRecord, []fsm.NodeRecord{{UUID: "u1", NodeID: "n1", PeerAddr: leader.Addr()}}, 1)
			},
			Members: testMembers,
			Logger:  hclog.NewNullLogger(),
		})
	}
	got, err := Join(t.Context(), newcomer, []string{follower.Addr()}, Request{NodeRecord: record}, nil, hclog.NewNullLogger())
	want := Joined{ClusterID: "c1", Members: []storage.Introducer{{UUID: peertest.UUID("n1"), PeerAddr: leader.Addr()}, testMembers()[1]}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v, %s", err, diff)
	}
}
