package cluster

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

func TestMajorityOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hashes map[string]string
		voters int
		want   string
	}{
		"all agree":             {map[string]string{"a": "1", "b": "1", "c": "1"}, 3, "1"},
		"one differs":           {map[string]string{"a": "1", "b": "2", "c": "1"}, 3, "1"},
		"one is missing":        {map[string]string{"a": "1", "b": "", "c": "1"}, 3, "1"},
		"two of five":           {map[string]string{"a": "1", "b": "1"}, 5, ""},
		"all differ":            {map[string]string{"a": "1", "b": "2", "c": "3"}, 3, ""},
		"two nodes that differ": {map[string]string{"a": "1", "b": "2"}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := majorityOf(c.hashes, c.voters)
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, ok, c.want)
			}
		})
	}
}

// A node that is told of a majority's hash stops if its own differs, and only then.
func TestNode_answerDiffer(t *testing.T) {
	t.Parallel()
	stopped := make(chan error, 1)
	n, err := newNode(Config{NodeID: "n", Fatal: func(err error) { stopped <- err }}.withDefaults(), Parts{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel(errNodeClosed)
	go n.checkpoints.noteHashes(n.ctx, n.fsm.Replacing)
	var own hashAnswer
	for own.Hash == "" { // a capture is dropped if the hasher is busy
		index := n.fsm.AppliedIndex() + 1
		n.fsm.ApplyEntry(index, 1, replicatest.Entry(1, command.Checkpoint{}))
		own = n.agreement.notes.at(index)
	}
	tell := func(a hashAnswer) {
		t.Helper()
		body, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Answer(context.Background(), callDiffer, body); err != nil {
			t.Fatal(err)
		}
		n.wg.Wait()
	}
	tell(own)
	tell(hashAnswer{Index: own.Index + 1000, Hash: "ff"}) // no hash was recorded at that index
	if len(stopped) != 0 {
		t.Fatalf("stopped without a reason: %v", <-stopped)
	}
	tell(hashAnswer{Index: own.Index, Hash: "ff"})
	if len(stopped) != 1 {
		t.Error("a node whose state differs from a majority's goes on")
	}
}

// A flipped bit in a task that does not change shows in one of the next 16 recorded hashes,
// and in the node's log.
func TestNode_noteHashes_findsRot(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := Config{NodeID: "n", Logger: hclog.New(&hclog.LoggerOptions{Output: &log})}
	n, err := newNode(cfg.withDefaults(), Parts{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel(errNodeClosed)
	go n.checkpoints.noteHashes(n.ctx, n.fsm.Replacing)
	capture := func() (noted, want hashAnswer) {
		index := n.fsm.AppliedIndex() + 1
		n.fsm.ApplyEntry(index, 1, replicatest.Entry(1, command.Tick{}))
		_, hash := n.StateHash()
		captureState(t, n)
		for noted.Hash == "" {
			runtime.Gosched()
			noted = n.agreement.notes.at(index)
		}
		return noted, hashAnswer{Index: index, Hash: hex.EncodeToString(hash[:])}
	}
	const message = "no command changed it"
	n.fsm.ApplyEntry(1, 1, replicatest.Entry(1, command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("1")}}}))
	for range 20 {
		if noted, want := capture(); noted != want || strings.Contains(log.String(), message) {
			t.Fatalf("noted %v, want %v; log:\n%s", noted, want, &log)
		}
	}
	n.fsm.Read(func(m *fsm.Machine) { m.Get(1).Params[0] ^= 2 })
	var noted, want hashAnswer
	for range 16 {
		noted, want = capture()
	}
	if noted != want || strings.Count(log.String(), message) != 1 {
		t.Errorf("noted %v, want %v; log:\n%s", noted, want, &log)
	}
}

// Hashing pauses regularly, but not while another state is about to replace the one that it
// keeps in memory.
func TestNode_noteHashes_hurriesBeforeARestore(t *testing.T) {
	t.Parallel()
	for name, replacing := range map[string]bool{"resting": false, "hurrying": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, err := newNode(Config{NodeID: "n"}.withDefaults(), Parts{})
				if err != nil {
					t.Fatal(err)
				}
				defer n.cancel(errNodeClosed)
				for i := uint64(1); i <= 4; i++ {
					n.fsm.ApplyEntry(i, 1, replicatest.Entry(1, command.Submit{Tasks: slices.Repeat([]fsm.NewTask{{Type: "mail"}}, 1000)}))
				}
				go n.checkpoints.noteHashes(n.ctx, func() bool { return replacing })
				captureState(t, n)
				synctest.Wait()
				if noted := n.agreement.notes.at(4).Hash != ""; noted != replacing {
					t.Errorf("noted without a rest: %v", noted)
				}
				n.cancel(errNodeClosed)
				synctest.Wait()
			})
		})
	}
}

// captureState records the hash of n's state, as at a checkpoint.
func captureState(t *testing.T, n *Node) {
	t.Helper()
	s, err := n.fsm.Capture()
	if err != nil {
		t.Fatal(err)
	}
	n.fsm.Captured <- s
}
