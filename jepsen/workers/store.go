package workers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/claimq/claimq/jepsen/workers/diary"
)

// store is what the work writes to: it takes a write only if it has not heard of
// a greater token for the task.
type store struct {
	server *http.Server
	url    string
	served chan struct{} // closed when the server has ended

	mu      sync.Mutex // guards what follows
	tasks   map[string]*record
	refused int
}

// record is what the store has of a task.
type record struct {
	token   int64 // the greatest it has heard of
	effect  int64 // the token of the last effect, 0 = none
	effects int
}

func startStore() (*store, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the store: %w", err)
	}
	s := &store{url: "http://" + l.Addr().String(), served: make(chan struct{}), tasks: map[string]*record{}}
	s.server = &http.Server{Handler: s}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(l) // it ends with close
	}()
	return s, nil
}

func (s *store) close() error {
	err := s.server.Close()
	<-s.served
	return err
}

// ServeHTTP takes a write, or answers 409.
func (s *store) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var w diary.Write
	if err := json.NewDecoder(r.Body).Decode(&w); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	if !s.take(w) {
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
		rec.effects++
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
