package main

import (
	"fmt"
	"sync"
)

// box stands for a database that knows the token of each row's last write. Concurrent calls are safe.
type box struct {
	full int    // number of letters at which it calls stop
	stop func() // stops the program

	mu      sync.Mutex
	letters map[string]written // by task
}

type written struct {
	token int64
	text  string
}

// put writes a letter, unless a later claim of its task has already written one. In SQL this would be a condition of
// the UPDATE: token <= ours.
func (b *box) put(taskID string, token int64, text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := b.letters[taskID].token; last > token {
		return fmt.Errorf("task %s was written under token %d, ours is %d", taskID, last, token)
	}
	b.letters[taskID] = written{token: token, text: text}
	if len(b.letters) == b.full {
		b.stop()
	}
	return nil
}

func (b *box) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.letters)
}
