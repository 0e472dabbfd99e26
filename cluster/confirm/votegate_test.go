package confirm

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// A closed gate lets no message of an election in or out, but all others.
func TestVoteGate(t *testing.T) {
	t.Parallel()
	_, there := raft.NewInmemTransport("there")
	_, here := raft.NewInmemTransport("here")
	there.Connect("here", here)
	here.Connect("there", there)
	gate := NewVoteGate()
	gated := Gated(here, gate)
	answer := func(in <-chan raft.RPC, resp any) { rpc := <-in; rpc.Respond(resp, nil) }

	votes := map[string]func(from raft.Transport, to raft.ServerAddress) error{
		"vote": func(from raft.Transport, to raft.ServerAddress) error {
			return from.RequestVote("id", to, &raft.RequestVoteRequest{}, &raft.RequestVoteResponse{})
		},
		"pre-vote": func(from raft.Transport, to raft.ServerAddress) error {
			return from.(raft.WithPreVote).RequestPreVote("id", to, &raft.RequestPreVoteRequest{}, &raft.RequestPreVoteResponse{})
		},
	}
	for name, ask := range votes {
		if err := ask(there, "here"); err == nil || err.Error() != errVoteGate.Error() {
			t.Errorf("%s: asked: %v", name, err)
		}
		if err := ask(gated, "there"); !errors.Is(err, errVoteGate) {
			t.Errorf("%s: asks: %v", name, err)
		}
	}
	handOver := func() error {
		return there.TimeoutNow("id", "here", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{})
	}
	if err := handOver(); err == nil {
		t.Error("it takes a leadership")
	}
	go answer(gated.Consumer(), &raft.AppendEntriesResponse{Success: true})
	var appended raft.AppendEntriesResponse
	if err := there.AppendEntries("id", "here", &raft.AppendEntriesRequest{}, &appended); err != nil || !appended.Success {
		t.Errorf("it does not follow: %v", err)
	}

	gate.Open()
	gate.Open() // a second call does nothing
	for name, ask := range votes {
		resp := any(&raft.RequestVoteResponse{})
		if name == "pre-vote" {
			resp = &raft.RequestPreVoteResponse{}
		}
		go answer(gated.Consumer(), resp)
		if err := ask(there, "here"); err != nil {
			t.Errorf("%s: asked of an open gate: %v", name, err)
		}
		go answer(there.Consumer(), resp)
		if err := ask(gated, "there"); err != nil {
			t.Errorf("%s: asks of an open gate: %v", name, err)
		}
	}
	go answer(gated.Consumer(), &raft.TimeoutNowResponse{})
	if err := handOver(); err != nil {
		t.Errorf("it does not take a leadership: %v", err)
	}
	if err := errors.Join(gated.Close(), gated.Close(), there.Close()); err != nil {
		t.Error(err)
	}
}
