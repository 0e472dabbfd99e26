package cluster

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// memoryLayer is a raft.StreamLayer whose connections stay in memory. Dialing
// reaches the layer to.
type memoryLayer struct {
	to       *memoryLayer
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newMemoryLayer() *memoryLayer {
	return &memoryLayer{incoming: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memoryLayer) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryLayer) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	here, there := net.Pipe()
	l.to.incoming <- there
	return here, nil
}

func (l *memoryLayer) Addr() net.Addr { return peerAddr("memory") }

func (l *memoryLayer) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Raft stops to read a pipeline's answers at the first that refuses, and may have
// decided to send more before it sees that it has stopped. It must be able to get
// to where it sees it. This is Raft's own transport, as a node runs it.
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
				follower := newMemoryLayer()
				leader := newMemoryLayer()
				leader.to = follower
				transport := func(l *memoryLayer) *raft.NetworkTransport {
					return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
						Stream: l, MaxPool: raftConnsPerPeer, Timeout: raftCallTimeout, Logger: hclog.NewNullLogger(),
					})
				}
				answering := transport(follower)
				go func() {
					for {
						select {
						case rpc := <-answering.Consumer():
							resp := refusal
							rpc.Respond(&resp, nil)
						case <-follower.closed:
							return
						}
					}
				}()
				c := newConfirmer(transport(leader))
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
				first := <-p.Consumer() // and none after it, as Raft
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
