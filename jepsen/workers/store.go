package workers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/claimq/claimq/jepsen/workers/diary"
)

// store is the target of the work's writes. It only accepts a write if it has not seen a
// greater token for the task.
type store struct {
	mu      sync.Mutex       // guards the fields below
	heard   map[string]int64 // the greatest token, by task
	effects map[string]int64 // the token of the last effect, by task
	refused int
}

func newStore() *store { return &store{heard: map[string]int64{}, effects: map[string]int64{}} }

// ServeHTTP accepts a write, or answers 409.
func (s *store) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var w diary.Write
	if err := json.NewDecoder(r.Body).Decode(&w); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
	} else if !s.take(w) {
		rw.WriteHeader(http.StatusConflict)
	}
}

func (s *store) take(w diary.Write) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Token < s.heard[w.TaskID] {
		s.refused++
		return false
	}
	s.heard[w.TaskID] = w.Token
	if w.What == diary.Effect {
		s.effects[w.TaskID] = w.Token
	}
	return true
}

// done reports whether the task's effect is from the claim with the token.
func (s *store) done(taskID string, token int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has := s.effects[taskID]; has != token { // 0: no effect
		return fmt.Errorf("the store has the effect of token %d", has)
	}
	return nil
}

func (s *store) refusedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}
