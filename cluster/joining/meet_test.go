package joining

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/cluster/peer/porttest"
	"github.com/claimq/claimq/internal/testwait"
)

// fakeNetwork carries calls between nodes in memory: peer address to handlers. Nodes that
// have not started cannot be reached.
type fakeNetwork struct {
	mu       sync.Mutex
	handlers map[string]map[string]peer.CallHandler
	nodes    map[string]peer.Hello // the nodes, by address
}

func newFakeNetwork() *fakeNetwork {
	return &fakeNetwork{handlers: make(map[string]map[string]peer.CallHandler), nodes: make(map[string]peer.Hello)}
}

// fakePort is one node's end of a fakeNetwork.
type fakePort struct {
	network *fakeNetwork
	addr    string
	self    peer.Hello
}

func (n *fakeNetwork) open(addr string, self peer.Hello) *fakePort {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[addr] = self
	return &fakePort{n, addr, self}
}

// stop makes a node unreachable.
func (n *fakeNetwork) stop(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.handlers, addr)
}

func (p *fakePort) Handle(name string, h peer.CallHandler) {
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	if p.network.handlers[p.addr] == nil {
		p.network.handlers[p.addr] = make(map[string]peer.CallHandler)
	}
	p.network.handlers[p.addr][name] = h
}

func (p *fakePort) Ask(ctx context.Context, addr, name string, body []byte) (answer []byte, by peer.Hello, err error) {
	p.network.mu.Lock()
	h, by := p.network.handlers[addr][name], p.network.nodes[addr]
	p.network.mu.Unlock()
	if h == nil {
		return nil, by, errors.New("connection refused")
	}
	answer, err = h(ctx, p.self, body)
	return answer, by, err
}

// meetNode is a node in a meeting, and the data on its disk.
type meetNode struct {
	port *fakePort
	cfg  MeetConfig

	mu    sync.Mutex
	state MeetState
	self  peer.Hello
}

func (n *meetNode) become(m Meeting) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.self.ClusterID = m.ClusterID
	if m.Bootstrap {
		n.state = MeetState{HasData: true}
		for _, server := range m.Configuration.Servers {
			n.state.MemberUUIDs = append(n.state.MemberUUIDs, string(server.ID))
		}
	}
}

func testList() map[string]string {
	return map[string]string{"n1": "host1:7401", "n2": "host2:7401", "n3": "host3:7401"}
}

// startMeetNode starts an empty node that answers meetings.
func startMeetNode(network *fakeNetwork, nodeID, uuid string, list map[string]string) *meetNode {
	n := &meetNode{self: peer.Hello{UUID: uuid, NodeID: nodeID, FeatureLevel: 1}}
	n.port = network.open(testList()[nodeID], n.self)
	n.cfg = MeetConfig{
		Self:   func() peer.Hello { n.mu.Lock(); defer n.mu.Unlock(); return n.self },
		State:  func() MeetState { n.mu.Lock(); defer n.mu.Unlock(); return n.state },
		List:   list,
		Logger: hclog.NewNullLogger(),
	}
	ServeMeetings(n.port, n.cfg)
	return n
}

func (n *meetNode) meet(ctx context.Context) (Meeting, error) {
	m, err := Meet(ctx, n.port, n.cfg)
	if err == nil {
		n.become(m)
	}
	return m, err
}

// Whatever the order and the pauses between their starts, all nodes in a list reach the
// same cluster. One that starts after the others have bootstrapped may bootstrap the same
// or start as the member that it is.
func TestMeet_anyOrder(t *testing.T) {
	t.Parallel()
	orders := [][]string{{"n1", "n2", "n3"}, {"n1", "n3", "n2"}, {"n2", "n1", "n3"}, {"n2", "n3", "n1"}, {"n3", "n1", "n2"}, {"n3", "n2", "n1"}}
	for _, order := range orders {
		for _, pause := range []time.Duration{0, 30 * time.Millisecond, 700 * time.Millisecond, time.Minute} {
			t.Run(fmt.Sprint(order, pause), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { meetInOrder(t, order, pause) })
			})
		}
	}
}

func meetInOrder(t *testing.T, order []string, pause time.Duration) {
	network := newFakeNetwork()
	results := make([]Meeting, len(order))
	var wg sync.WaitGroup
	for i, nodeID := range order {
		node := startMeetNode(network, nodeID, "uuid-of-"+nodeID, testList())
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var err error
			if results[i], err = node.meet(ctx); err != nil {
				t.Errorf("%s: %v", nodeID, err)
			}
		})
		<-time.After(pause) // of the bubble's clock
	}
	wg.Wait()
	want := Meeting{ClusterID: results[0].ClusterID, Bootstrap: true, Configuration: raft.Configuration{Servers: []raft.Server{
		{ID: "uuid-of-n1", Address: "host1:7401"}, {ID: "uuid-of-n2", Address: "host2:7401"}, {ID: "uuid-of-n3", Address: "host3:7401"},
	}}}
	bootstrapped := 0
	for i, got := range results {
		if got.Bootstrap {
			bootstrapped++
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", order[i], diff)
			}
		}
		if got.ClusterID == "" || got.ClusterID != want.ClusterID {
			t.Errorf("%s is in cluster %q, the first in %q", order[i], got.ClusterID, want.ClusterID)
		}
	}
	if bootstrapped == 0 {
		t.Error("nobody bootstrapped")
	}
}

// The race: n1 has heard all and bootstraps, while n3 has heard n1 but n2 is gone.
func TestMeet_afterOthersBootstrapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newFakeNetwork()
		n1 := startMeetNode(network, "n1", "u1", testList())
		startMeetNode(network, "n2", "u2", testList())
		n3 := startMeetNode(network, "n3", "u3", testList())
		first, err := n1.meet(t.Context())
		if err != nil || !first.Bootstrap {
			t.Fatalf("n1: %+v, %v", first, err)
		}
		network.stop(testList()["n2"])
		second, err := n3.meet(t.Context())
		if err != nil || second.Bootstrap || second.ClusterID != first.ClusterID {
			t.Fatalf("n3: %+v, %v; n1 is in %s", second, err, first.ClusterID)
		}
		// Otherwise it would ignore n2's requests for a vote if n1 is gone.
		want := []raft.Server{{ID: "u1", Address: "host1:7401"}, {ID: "u2"}}
		if diff := cmp.Diff(want, second.Configuration.Servers); diff != "" {
			t.Errorf("n3 knows of other members (-want +got):\n%s", diff)
		}
	})
}

// A third node whose folder was wiped must not take part under its old flags, no matter
// which of the others it reaches first.
func TestMeet_wipedNode(t *testing.T) {
	t.Parallel()
	for _, down := range []string{"", "n1", "n2"} {
		synctest.Test(t, func(t *testing.T) {
			network := newFakeNetwork()
			n1 := startMeetNode(network, "n1", "u1", testList())
			n2 := startMeetNode(network, "n2", "u2", testList())
			n3 := startMeetNode(network, "n3", "u3", testList())
			for _, n := range []*meetNode{n1, n2, n3} {
				if _, err := n.meet(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			n2.become(Meeting{ClusterID: n1.self.ClusterID, Bootstrap: true, Configuration: raft.Configuration{Servers: []raft.Server{{ID: "u1"}, {ID: "u2"}, {ID: "u3"}}}})
			network.stop(testList()[down])

			wiped := startMeetNode(network, "n3", "u3-of-a-wiped-folder", testList())
			_, err := wiped.meet(t.Context())
			if !errors.Is(err, ErrNotAMember) {
				t.Fatalf("got %v, want ErrNotAMember", err)
			}
			for _, want := range []string{"empty or was wiped", "--node-id n3-new", "--join host1:7401,host2:7401", "claimq cluster remove n3"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// A wiped node waits while it reaches no node with data: it must not create a new
// cluster while the others are absent, and refuses to start once one is there.
func TestMeet_wipedNodeStartsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newFakeNetwork()
		var log bytes.Buffer
		wiped := startMeetNode(network, "n3", "u3-of-a-wiped-folder", testList())
		wiped.cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		startMeetNode(network, "n2", "u2", testList()) // empty too
		done := make(chan error, 1)
		go func() {
			_, err := wiped.meet(t.Context())
			done <- err
		}()
		<-time.After(12 * time.Second) // of the bubble's clock
		select {
		case err := <-done:
			t.Fatalf("did not wait for n1: %v", err)
		default:
		}
		n1 := startMeetNode(network, "n1", "u1", nil)
		n1.become(Meeting{ClusterID: "c", Bootstrap: true, Configuration: raft.Configuration{Servers: []raft.Server{{ID: "u1"}, {ID: "u2"}, {ID: "u3"}}}})
		if err := <-done; !errors.Is(err, ErrNotAMember) {
			t.Fatalf("got %v, want ErrNotAMember", err)
		}
		if n := strings.Count(log.String(), "n1=host1:7401 (connection refused)"); n < 2 || n > 4 {
			t.Errorf("logged who is missing %d times in 12 s:\n%s", n, log.String())
		}
	})
}

func TestMeet_endsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n1 := startMeetNode(newFakeNetwork(), "n1", "u1", testList())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := n1.meet(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "n2=host2:7401") {
			t.Fatalf("got %v", err)
		}
	})
}

// The meaning of one round of answers.
func TestDecideMeeting(t *testing.T) {
	t.Parallel()
	list := testList()
	hash := listHash(list)
	empty := func(nodeID string) meetAnswer {
		return meetAnswer{NodeID: nodeID, UUID: "u" + nodeID[1:], ListHash: hash}
	}
	member := func(nodeID, clusterID string, uuids ...string) meetAnswer {
		return meetAnswer{NodeID: nodeID, UUID: "u" + nodeID[1:], ClusterID: clusterID, MeetState: MeetState{HasData: true, MemberUUIDs: uuids}}
	}
	derived := clusterIDOf(map[string]string{"n1": "u1", "n2": "u2", "n3": "u3"})
	cases := map[string]struct {
		self    peer.Hello
		answers []meetAnswer
		want    string // "wait", "bootstrap", "member CLUSTER", or part of the error
	}{
		"nobody answers":                     {answers: nil, want: "wait"},
		"one is missing":                     {answers: []meetAnswer{empty("n2")}, want: "wait"},
		"all are empty":                      {answers: []meetAnswer{empty("n2"), empty("n3")}, want: "bootstrap"},
		"one has bootstrapped with us":       {answers: []meetAnswer{member("n2", derived, "u1", "u2", "u3"), empty("n3")}, want: "member " + derived},
		"one has, the other is missing":      {answers: []meetAnswer{member("n2", derived, "u1", "u2", "u3")}, want: "member " + derived},
		"both have bootstrapped with us":     {answers: []meetAnswer{member("n2", "c", "u1"), member("n3", "c", "u1")}, want: "member c"},
		"one has data without us":            {answers: []meetAnswer{member("n2", "c", "u2", "u3"), empty("n3")}, want: "not a member"},
		"one without us, the other with us":  {answers: []meetAnswer{member("n2", "c", "u1"), member("n3", "c", "u2")}, want: "not a member"},
		"they are in different clusters":     {answers: []meetAnswer{member("n2", "c", "u1"), member("n3", "d", "u1")}, want: "different clusters"},
		"data without a cluster":             {answers: []meetAnswer{member("n2", "", "u1")}, want: "no cluster id"},
		"an address of another node":         {answers: []meetAnswer{{NodeID: "n9", UUID: "u9", ListHash: hash}}, want: `calls itself "n9"`},
		"a copied folder":                    {answers: []meetAnswer{empty("n2"), {NodeID: "n3", UUID: "u2", ListHash: hash}}, want: "is a copy"},
		"our folder, copied":                 {answers: []meetAnswer{{NodeID: "n2", UUID: "u1", ListHash: hash}}, want: "is a copy"},
		"another list":                       {answers: []meetAnswer{empty("n2"), {NodeID: "n3", UUID: "u3", ListHash: "other"}}, want: "not started with the same list"},
		"no list":                            {answers: []meetAnswer{{NodeID: "n2", UUID: "u2"}}, want: "not started with the same list"},
		"we were in another cluster":         {self: peer.Hello{ClusterID: "earlier"}, answers: []meetAnswer{empty("n2"), empty("n3")}, want: "belonged to cluster earlier"},
		"we were about to bootstrap":         {self: peer.Hello{ClusterID: derived}, answers: []meetAnswer{empty("n2"), empty("n3")}, want: "bootstrap"},
		"an empty one was in another":        {answers: []meetAnswer{empty("n2"), {NodeID: "n3", UUID: "u3", ListHash: hash, ClusterID: "earlier"}}, want: "belonged to cluster earlier"},
		"with data and no list, as restarts": {answers: []meetAnswer{member("n3", "c", "u1", "u2", "u3")}, want: "member c"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self := tc.self
			self.NodeID, self.UUID = "n1", "u1"
			answers := make(map[string]meetAnswer)
			for i, a := range tc.answers {
				nodeID := a.NodeID
				if _, listed := list[nodeID]; !listed {
					nodeID = fmt.Sprintf("n%d", i+2)
				}
				answers[nodeID] = a
			}
			m, decided, err := decideMeeting(list, self, answers)
			got := "wait"
			switch {
			case err != nil:
				got = err.Error()
			case decided && m.Bootstrap:
				got = "bootstrap"
			case decided:
				got = "member " + m.ClusterID
			}
			if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Nodes of different versions must agree on the id of a cluster, so it must never change
// for the same nodes.
func TestMeet_initialCluster(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		list map[string]string
		want string
	}{
		"without us":       {map[string]string{"n2": "a:1"}, "does not name this node"},
		"an address twice": {map[string]string{"n1": "a:1", "n2": "a:1"}, `for "n1" and "n2"`},
	} {
		n := startMeetNode(newFakeNetwork(), "n1", "u1", tc.list)
		if _, err := n.meet(t.Context()); !errors.Is(err, ErrInitialCluster) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestClusterIDOf(t *testing.T) {
	t.Parallel()
	got := clusterIDOf(map[string]string{"n2": "u2", "n1": "u1"})
	const want = "42a03752-fc52-890a-9dba-b8ab39a149d7"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if clusterIDOf(map[string]string{"n1": "u1\" \"n2", "n2": "u2"}) == clusterIDOf(map[string]string{"n1": "u1", "n2\" \"n2": "u2"}) {
		t.Error("two lists have one id")
	}
}

// The same over real ports.
func TestMeet_overPeerPorts(t *testing.T) {
	t.Parallel()
	list, ports := make(map[string]string), make(map[string]*peer.Port)
	for _, nodeID := range []string{"n1", "n2", "n3"} {
		ports[nodeID] = porttest.Open(t, nodeID, func(c *peer.Config) {
			c.Self = func() peer.Hello { return peer.Hello{UUID: peertest.UUID(nodeID), NodeID: nodeID} }
		})
		list[nodeID] = ports[nodeID].Addr()
	}
	results := make(chan Meeting, len(ports))
	for nodeID, port := range ports {
		self := func() peer.Hello { return peer.Hello{UUID: peertest.UUID(nodeID), NodeID: nodeID} }
		cfg := MeetConfig{Self: self, List: list, State: func() MeetState { return MeetState{} }, Logger: hclog.NewNullLogger(), RetryInterval: 10 * time.Millisecond}
		ServeMeetings(port, cfg)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), testwait.Patience)
			defer cancel()
			m, err := Meet(ctx, port, cfg)
			if err != nil {
				t.Errorf("meet: %v", err)
			}
			results <- m
		}()
	}
	first := <-results
	if !first.Bootstrap || len(first.Configuration.Servers) != 3 {
		t.Fatalf("got %+v", first)
	}
	for range len(ports) - 1 {
		if diff := cmp.Diff(first, <-results); diff != "" {
			t.Errorf("(-one +other):\n%s", diff)
		}
	}
}
