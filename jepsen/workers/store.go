package workers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/claimq/claimq/jepsen/workers/diary"
)

// store is what the work writes to: it takes a write only if it has not heard of
// a greater token for the task.
type store struct {
	server *httptest.Server

	mu      sync.Mutex // guards what follows
	tasks   map[string]*record
	refused int
}

// record is what the store has of a task.
type record struct {
	token  int64 // the greatest it has heard of
	effect int64 // the token of the last effect, 0 = none
}

func startStore() *store {
	s := &store{tasks: map[string]*record{}}
	s.server = httptest.NewServer(s)
	return s
}

// ServeHTTP takes a write, or answers 409.
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
	rec := s.tasks[w.TaskID]
	if rec == nil {
		rec = &record{}
		s.tasks[w.TaskID] = rec
	}
	if w.Token < rec.token {
		s.refused++
		return false
	}
	rec.token = w.Token
	if w.What == diary.Effect {
		rec.effect = w.Token
	}
	return true
}

// errNoEffect is why a task that was completed has nothing to show for it.
var errNoEffect = errors.New("the store has no effect of it")

// done reports whether the task's effect is that of the claim with the token.
func (s *store) done(taskID string, token int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.tasks[taskID]
	switch {
	case rec == nil || rec.effect == 0:
		return errNoEffect
	case rec.effect != token:
		return fmt.Errorf("the store has the effect of token %d", rec.effect)
	}
	return nil
}

func (s *store) refusedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}
