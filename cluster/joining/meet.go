package joining

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/nodekey"
	"github.com/claimq/claimq/cluster/peer"
)

const (
	meetCallTimeout    = 2 * time.Second
	meetRetryInterval  = 500 * time.Millisecond
	meetLogInterval    = 5 * time.Second
	initialClusterMax  = 32 // nodes in one list
	memberUUIDsReadMax = 1024
)

// Errors of meeting. Waiting resolves none of them.
var (
	// ErrInitialCluster is returned when the list of --initial-cluster is invalid or differs from
	// the one that other nodes have.
	ErrInitialCluster = errors.New("--initial-cluster")
	// ErrNotAMember is returned when a listed node has data and does not know this node: this data
	// folder is empty or was wiped.
	ErrNotAMember = errors.New("this node is not a member of the cluster")
)

// peerCaller asks other nodes, like *peer.Port.
type peerCaller interface {
	Ask(ctx context.Context, addr, name string, body []byte) (answer []byte, by peer.Hello, err error)
}

// peerHandler lets other nodes ask, like *peer.Port.
type peerHandler interface {
	Handle(name string, h peer.CallHandler)
}

var (
	_ peerCaller  = (*peer.Port)(nil)
	_ peerHandler = (*peer.Port)(nil)
)

// MeetConfig configures a meeting.
type MeetConfig struct {
	// Self returns this node's hello. NodeID and UUID never change, and are durable before the
	// first call.
	Self func() peer.Hello
	// List is --initial-cluster: node ids and advertised peer addresses. nil if the node was
	// started without it.
	List map[string]string
	// State returns what this node has now. It must be safe for concurrent use.
	State func() MeetState
	// Logger gets a line every few seconds about missing nodes.
	Logger hclog.Logger
	// RetryInterval and LogInterval are for tests; 0 = half a second, 5 s.
	RetryInterval, LogInterval time.Duration
}

// MeetState says what a node has. It must be correct from the moment that a configuration is on
// disk: a node that has bootstrapped must not call itself empty.
type MeetState struct {
	HasData     bool     `json:"has_data"`
	MemberUUIDs []string `json:"member_uuids,omitempty"` // of its configuration, including nonvoters
}

// meetAnswer is a node's answer in a meeting. It contains only what is on its disk.
type meetAnswer struct {
	MeetState
	NodeID    string `json:"node_id"`
	UUID      string `json:"uuid"`
	ClusterID string `json:"cluster_id,omitempty"`
	ListHash  string `json:"list_hash,omitempty"`
}

// Meeting is the result of a meeting.
type Meeting struct {
	ClusterID string
	// Bootstrap: all listed nodes are empty and agree, and each of them writes the same
	// Configuration. Otherwise this node is already a member of the cluster, starts with nothing
	// and waits to be contacted; Configuration then has the other members as the answers list them,
	// without addresses for those that did not answer.
	Bootstrap     bool
	Configuration raft.Configuration
}

// checkList returns an error if self cannot meet by the list.
func checkList(list map[string]string, self string) error {
	if _, ok := list[self]; !ok {
		return fmt.Errorf("%w does not name this node, %q: it has %s", ErrInitialCluster, self, strings.Join(slices.Sorted(maps.Keys(list)), ", "))
	}
	if len(list) > initialClusterMax {
		return fmt.Errorf("%w names %d nodes, more than %d", ErrInitialCluster, len(list), initialClusterMax)
	}
	byAddr := make(map[string]string, len(list))
	for _, nodeID := range slices.Sorted(maps.Keys(list)) {
		addr := list[nodeID]
		if other, taken := byAddr[addr]; taken {
			return fmt.Errorf("%w has the address %s for %q and %q", ErrInitialCluster, addr, other, nodeID)
		}
		byAddr[addr] = nodeID
	}
	return nil
}

// ServeMeetings answers the calls of meeting nodes as long as the port is open, because a late
// starter has to learn the result.
func ServeMeetings(port peerHandler, cfg MeetConfig) {
	hash := listHash(cfg.List)
	port.Handle(peer.CallMeet, func(context.Context, peer.Hello, []byte) ([]byte, error) {
		// State before Self: the cluster id is on disk before any data, so an answer with data
		// always has it.
		state := cfg.State()
		self := cfg.Self()
		return json.Marshal(meetAnswer{
			MeetState: state,
			NodeID:    self.NodeID, UUID: self.UUID, ClusterID: self.ClusterID, ListHash: hash,
		})
	})
}

// Meet asks every listed node until all have answered in the same round, then decides what this
// node, which is empty, has to do. All nodes of a list get the same result, whatever the order of
// their starts:
//
//   - All are empty, have the same list, and keep their UUIDs: bootstrap. The cluster's id and configuration follow from list and UUIDs alone, so every node writes the same.
//   - One has data and its configuration contains our UUID: it has bootstrapped with us in it (or we joined once). Start without bootstrapping, and without waiting for further
//     nodes, because they no longer matter.
//   - One has data without us: ErrNotAMember. Our folder is new or was wiped; if it was wiped, this node may have voted before and must not vote twice.
//
// ServeMeetings must be running. It waits until ctx ends.
func Meet(ctx context.Context, port peerCaller, cfg MeetConfig) (Meeting, error) {
	self := cfg.Self()
	if err := checkList(cfg.List, self.NodeID); err != nil {
		return Meeting{}, err
	}
	retry := time.NewTicker(positiveOr(cfg.RetryInterval, meetRetryInterval))
	defer retry.Stop()
	logInterval := positiveOr(cfg.LogInterval, meetLogInterval)
	var loggedAt time.Time
	for {
		answers, missing := askAll(ctx, port, cfg.List, self.NodeID)
		result, decided, err := decideMeeting(cfg.List, self, answers)
		if decided || err != nil {
			return result, err
		}
		if len(missing) > 0 && time.Since(loggedAt) >= logInterval {
			loggedAt = time.Now()
			cfg.Logger.Info("waiting for the other nodes of --initial-cluster", "missing", describeMissing(cfg.List, missing))
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return Meeting{}, fmt.Errorf("meet %s: %w", describeMissing(cfg.List, missing), ctx.Err())
		}
	}
}

// askAll asks every listed node except self, concurrently, and returns the answers and the reasons
// for missing ones, both by node id.
func askAll(ctx context.Context, port peerCaller, list map[string]string, self string) (answers map[string]meetAnswer, missing map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, meetCallTimeout)
	defer cancel()
	type reply struct {
		nodeID string
		answer meetAnswer
		err    error
	}
	replies := make(chan reply)
	for nodeID, addr := range list {
		if nodeID == self {
			continue
		}
		go func() {
			answer, err := askOne(ctx, port, addr)
			replies <- reply{nodeID, answer, err}
		}()
	}
	answers, missing = make(map[string]meetAnswer), make(map[string]error)
	for range len(list) - 1 {
		r := <-replies
		if r.err != nil {
			missing[r.nodeID] = r.err
			continue
		}
		answers[r.nodeID] = r.answer
	}
	return answers, missing
}

func askOne(ctx context.Context, port peerCaller, addr string) (meetAnswer, error) {
	body, by, err := port.Ask(ctx, addr, peer.CallMeet, []byte("{}"))
	if err != nil {
		return meetAnswer{}, err
	}
	var answer meetAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return meetAnswer{}, fmt.Errorf("decode answer: %w", err)
	}
	if answer.UUID != by.UUID || len(answer.MemberUUIDs) > memberUUIDsReadMax {
		return meetAnswer{}, errors.New("the answer makes no sense")
	}
	return answer, nil
}

// decideMeeting applies the rules of Meet to the answers of one round. decided is false while nodes
// are missing.
func decideMeeting(list map[string]string, self peer.Hello, answers map[string]meetAnswer) (result Meeting, decided bool, err error) {
	uuids := map[string]string{self.NodeID: self.UUID}
	owners := map[string]string{self.UUID: self.NodeID}
	members := make(map[string]bool) // by UUID
	clusterID := ""
	for _, nodeID := range slices.Sorted(maps.Keys(answers)) {
		a := answers[nodeID]
		if err := checkAnswer(list, self, nodeID, a); err != nil {
			return Meeting{}, false, err
		}
		if other, taken := owners[a.UUID]; taken {
			return Meeting{}, false, fmt.Errorf("%w: nodes %q and %q have the same identity %s: one data folder is a copy of the other; give one of them an empty --data-dir", ErrInitialCluster, other, nodeID, a.UUID)
		}
		uuids[nodeID], owners[a.UUID] = a.UUID, nodeID
		if !a.HasData {
			continue
		}
		if clusterID != "" && clusterID != a.ClusterID {
			return Meeting{}, false, fmt.Errorf("%w: the listed nodes belong to different clusters, %s and %s (node %q)", ErrInitialCluster, clusterID, a.ClusterID, nodeID)
		}
		clusterID = a.ClusterID
		members[a.UUID] = true
		for _, uuid := range a.MemberUUIDs {
			members[uuid] = true
		}
	}
	if clusterID != "" {
		delete(members, self.UUID)
		return Meeting{ClusterID: clusterID, Configuration: configurationOf(list, uuids, members)}, true, nil
	}
	if len(uuids) < len(list) {
		return Meeting{}, false, nil
	}
	result = bootstrapMeeting(list, uuids)
	if err := checkUnclaimed(result.ClusterID, self, answers); err != nil {
		return Meeting{}, false, err
	}
	return result, true, nil
}

// configurationOf returns the members, by UUID, as this node knows them: those that answered, with
// their listed address, then the others. All of them count: with only the one that has data, a node
// could neither vote nor accept a vote request of another if that one is gone.
func configurationOf(list, uuids map[string]string, members map[string]bool) (c raft.Configuration) {
	for _, nodeID := range slices.Sorted(maps.Keys(uuids)) {
		if uuid := uuids[nodeID]; members[uuid] {
			c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(uuid), Address: raft.ServerAddress(list[nodeID])})
			delete(members, uuid)
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(members)) {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(uuid)})
	}
	return c
}

// checkUnclaimed refuses to bootstrap if one of the nodes was in another cluster before, because
// then its folder, or those of the others, has lost data.
func checkUnclaimed(clusterID string, self peer.Hello, answers map[string]meetAnswer) error {
	earlier := map[string]string{self.NodeID: self.ClusterID}
	for nodeID, a := range answers {
		earlier[nodeID] = a.ClusterID
	}
	for _, nodeID := range slices.Sorted(maps.Keys(earlier)) {
		if id := earlier[nodeID]; id != "" && id != clusterID {
			return fmt.Errorf("%w: no listed node has data, but node %q belonged to cluster %s: bring the nodes back that have its data, or start again with empty data folders on all nodes", ErrInitialCluster, nodeID, id)
		}
	}
	return nil
}

// checkAnswer returns an error for a problem in one answer that waiting cannot fix.
func checkAnswer(list map[string]string, self peer.Hello, nodeID string, a meetAnswer) error {
	addr := list[nodeID]
	switch {
	case a.NodeID != nodeID:
		return fmt.Errorf("%w: the node at %s calls itself %q, the list says %q", ErrInitialCluster, addr, peer.Printable(a.NodeID), nodeID)
	case a.HasData && !slices.Contains(a.MemberUUIDs, self.UUID):
		return notAMember(list, self, nodeID)
	case a.HasData && a.ClusterID == "":
		return fmt.Errorf("%w: node %q at %s has data but no cluster id", ErrInitialCluster, nodeID, addr)
	case !a.HasData && a.ListHash != listHash(list):
		return fmt.Errorf("%w: node %q at %s was not started with the same list as this node, %q; this node has %s",
			ErrInitialCluster, nodeID, addr, self.NodeID, formatList(list))
	default:
		return nil
	}
}

// notAMember explains how a node without data can get into a cluster that has some.
func notAMember(list map[string]string, self peer.Hello, withData string) error {
	var peers []string
	for _, nodeID := range slices.Sorted(maps.Keys(list)) {
		if nodeID != self.NodeID {
			peers = append(peers, list[nodeID])
		}
	}
	join := strings.Join(peers, ",")
	return fmt.Errorf("%w: node %q at %s has data, and its cluster does not contain this node, %q with identity %s: the data folder of this node is empty or was wiped. "+
		"It may not take part as the old %q again. Either join under a new name with an empty data folder: `claimq server --node-id %s-new --data-dir NEW_DIR --peer-addr %s --join %s`; "+
		"or remove the old member first, `claimq cluster remove %s`, and start this node with `--join %s` in place of --initial-cluster",
		ErrNotAMember, withData, list[withData], self.NodeID, self.UUID, self.NodeID, self.NodeID, list[self.NodeID], join, self.NodeID, join)
}

// bootstrapMeeting returns what all nodes of the list write, from only the list and the UUIDs.
func bootstrapMeeting(list, uuids map[string]string) Meeting {
	m := Meeting{ClusterID: clusterIDOf(uuids), Bootstrap: true}
	for _, nodeID := range slices.Sorted(maps.Keys(list)) {
		m.Configuration.Servers = append(m.Configuration.Servers, raft.Server{
			Suffrage: raft.Voter,
			ID:       raft.ServerID(uuids[nodeID]),
			Address:  raft.ServerAddress(list[nodeID]),
		})
	}
	return m
}

// clusterIDOf derives a cluster's id from its first nodes, a map of node id to UUID: a version 8
// UUID of the SHA-256 of the sorted pairs.
func clusterIDOf(uuids map[string]string) string {
	h := sha256.New()
	h.Write([]byte("claimq cluster 1\n"))
	for _, nodeID := range slices.Sorted(maps.Keys(uuids)) {
		// Quoted, so that different lists give different text.
		fmt.Fprintf(h, "%q %q\n", nodeID, uuids[nodeID])
	}
	return nodekey.UUIDOfHash([sha256.Size]byte(h.Sum(nil)))
}

// listHash returns the hex SHA-256 of a list, "" for none.
func listHash(list map[string]string) string {
	if len(list) == 0 {
		return ""
	}
	h := sha256.New()
	for _, nodeID := range slices.Sorted(maps.Keys(list)) {
		fmt.Fprintf(h, "%q %q\n", nodeID, list[nodeID])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func formatList(list map[string]string) string {
	items := make([]string, 0, len(list))
	for _, nodeID := range slices.Sorted(maps.Keys(list)) {
		items = append(items, nodeID+"="+list[nodeID])
	}
	return strings.Join(items, ",")
}

func describeMissing(list map[string]string, missing map[string]error) string {
	items := make([]string, 0, len(missing))
	for _, nodeID := range slices.Sorted(maps.Keys(missing)) {
		items = append(items, fmt.Sprintf("%s=%s (%v)", nodeID, list[nodeID], missing[nodeID]))
	}
	return strings.Join(items, "; ")
}

func positiveOr(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
