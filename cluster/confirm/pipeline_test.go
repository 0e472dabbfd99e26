package confirm

import (
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/peertest"
)

// Raft stops reading a pipeline's answers at the first that refuses, and may have decided
// to send more before it notices. It must not block before it can notice. This is Raft's
// own transport, as a node runs it.
func TestConfirmer_pipelineAfterARefusal(t *testing.T) {
	t.Parallel()
	const term = 7
	for name, refusal := range map[string]raft.AppendEntriesResponse{
		"the logs differ": {Term: term, LastLog: 3},
		"a newer term":    {Term: term + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				follower := peertest.NewMemoryLayer()
				leader := peertest.NewMemoryLayer()
				leader.To = follower
				transport := func(l *peertest.MemoryLayer) *raft.NetworkTransport {
					return peer.NewRaftTransport(l, hclog.NewNullLogger())
				}
				answering := transport(follower)
				go func() {
					for {
						select {
						case rpc := <-answering.Consumer():
							resp := refusal
							rpc.Respond(&resp, nil)
						case <-follower.Closed:
							return
						}
					}
				}()
				c := New(transport(leader), Config{})
				p, err := c.AppendEntriesPipeline("b", "b")
				if err != nil {
					t.Fatal(err)
				}
				const messages = 8
				sent := make(chan int)
				go func() {
					defer close(sent)
					for i := range messages {
						if _, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: term, PrevLogEntry: 4}, &raft.AppendEntriesResponse{}); err != nil {
							return
						}
						sent <- i
					}
				}()
				first := <-p.Consumer() // like Raft, none after it
				if first.Response().Success {
					t.Error("the first answer does not refuse")
				}
				for i := range messages {
					synctest.Wait()
					select {
					case <-sent:
					default:
						t.Errorf("message %d of %d cannot be sent: it waits for somebody to take an answer", i+1, messages)
					}
					if t.Failed() {
						break
					}
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				for range sent { // until the sender has ended
				}
				for _, err := range []error{c.Close(), answering.Close()} {
					if err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
