package fuzz

import (
	"math/rand"
	"regexp"
	"strconv"
	"sync"
)

// seenMax bounds the claims that are remembered.
const seenMax = 256

// seen remembers tasks and claims from answers, so that later requests are about existing
// ones. It is safe for concurrent use.
type seen struct {
	mu     sync.Mutex // guards the fields below
	claims []claim
	next   int // the claim to replace next

	handles []string // receipt handles of SQS, at most seenMax
}

// claim is a task with its claim, if any.
type claim struct {
	id, token uint64
	worker    string
}

var (
	answeredTask   = regexp.MustCompile(`"id":\s?(\d+),"task_type"`)
	answeredClaim  = regexp.MustCompile(`"worker_id":"([^"]+)","claim_token":(\d+)`)
	answeredHandle = regexp.MustCompile(`(?:"ReceiptHandle":"|<ReceiptHandle>)([^"<]+)`)
)

// note remembers the tasks and claims in an answer.
func (s *seen) note(body []byte) {
	if handle := answeredHandle.FindSubmatch(body); handle != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handles = append(s.handles[max(len(s.handles)-seenMax+1, 0):], string(handle[1]))
		return
	}
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

// claim returns one of them, or one that may not exist.
func (s *seen) claim(rng *rand.Rand) claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) == 0 {
		return claim{id: 1 + uint64(rng.Intn(100)), token: 1 + uint64(rng.Intn(100))}
	}
	return s.claims[rng.Intn(len(s.claims))]
}
