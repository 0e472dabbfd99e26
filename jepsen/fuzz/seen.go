package fuzz

import (
	"math/rand"
	"regexp"
	"strconv"
	"sync"
)

// seenMax bounds the claims that are remembered.
const seenMax = 256

// seen are tasks and claims that answers have named, so that later requests are
// about something that is there. It is safe for concurrent use.
type seen struct {
	mu     sync.Mutex // guards what follows
	claims []claim
	next   int // of claims, to be replaced
}

// claim is a task, and who holds it if anybody does.
type claim struct {
	id, token uint64
	worker    string
}

var (
	answeredTask  = regexp.MustCompile(`"id":\s?(\d+),"task_type"`)
	answeredClaim = regexp.MustCompile(`"worker_id":"([^"]+)","claim_token":(\d+)`)
)

// note remembers what an answer names.
func (s *seen) note(body []byte) {
	task := answeredTask.FindSubmatch(body)
	if task == nil {
		return
	}
	c := claim{token: 1}
	c.id, _ = strconv.ParseUint(string(task[1]), 10, 64)
	if claim := answeredClaim.FindSubmatch(body); claim != nil {
		c.worker = string(claim[1])
		c.token, _ = strconv.ParseUint(string(claim[2]), 10, 64)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) < seenMax {
		s.claims = append(s.claims, c)
		return
	}
	s.claims[s.next] = c
	s.next = (s.next + 1) % seenMax
}

// claim returns one of them, or what may be none.
func (s *seen) claim(rng *rand.Rand) claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) == 0 {
		return claim{id: 1 + uint64(rng.Intn(100)), token: 1 + uint64(rng.Intn(100))}
	}
	return s.claims[rng.Intn(len(s.claims))]
}
