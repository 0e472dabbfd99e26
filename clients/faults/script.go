package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed scripts.json
var scriptsJSON []byte

// script is a call of a client, the answers it gets, and the outcome that it must report.
type script struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	// Endpoints is the number of nodes that the client knows, counted from the first; 0: all.
	Endpoints int `json:"endpoints"`
	// Call is submit of {"task_type": "mail", "params": {"to": "ada"}}; get, retry or delete of the
	// task 1; or claim, a batch with one claim of the worker w. It is made Calls times, one after the other; 0: once.
	Call  string `json:"call"`
	Calls int    `json:"calls"`
	// TimeoutMS bounds the time of a call. On a busy machine it may be over before the last request is answered. The
	// call then ends with outcome_unknown, as it must: a client that meets this where the script has another outcome
	// plays the script again.
	TimeoutMS int `json:"timeout_ms"`
	// Answers are the answers to the requests, in the order in which they come, whichever node
	// they come to. The last one is given to all that follow.
	Answers []string `json:"answers"`
	// Asked are the nodes that the requests come to; nil: any.
	Asked []int `json:"asked"`
	// Outcome is the end of the last call: done, or the family of its error, which has the code Code.
	Outcome string `json:"outcome"`
	Code    string `json:"code"`
}

// answer returns the answer to the i-th request, from 0.
func (s *script) answer(i int) string { return s.Answers[min(i, len(s.Answers)-1)] }

func readScripts() ([]script, error) {
	var all []script
	if err := json.Unmarshal(scriptsJSON, &all); err != nil {
		return nil, fmt.Errorf("read scripts: %w", err)
	}
	return all, nil
}

// plan is the line that a client reads.
type plan struct {
	Endpoints []string `json:"endpoints"`
	Call      string   `json:"call"`
	Calls     int      `json:"calls"`
	TimeoutMS int      `json:"timeout_ms"`
	Outcome   string   `json:"outcome"`
	Code      string   `json:"code"`
}
