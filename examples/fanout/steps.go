package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/claimq/claimq/client"
)

// The types of the steps: workers could claim one of them alone.
const (
	fetchType = "fanout.fetch"
	lookType  = "fanout.look"
	mergeType = "fanout.merge"
)

type fetchParams struct {
	Path string `json:"path"` // "": a text that is built in
}

type lookParams struct {
	At string `json:"at"` // lines, words or longest
}

const builtIn = `Two workers saw a task go by.
"It's mine", said one, "my token's high."
The other looked at his, a while,
and let it go: his lease had died.
`

// do does a step, and returns its result as JSON.
func (p *program) do(ctx context.Context, step *client.Task) ([]byte, error) {
	switch step.TaskType {
	case fetchType:
		return fetch(step)
	case lookType:
		return p.look(ctx, step)
	case mergeType:
		parts, err := p.c.DependencyResults(ctx, step)
		if err != nil {
			return nil, err
		}
		return merge(parts)
	}
	return nil, client.Permanent(fmt.Errorf("no such step: %s", step.TaskType))
}

// fetch returns the text.
func fetch(step *client.Task) ([]byte, error) {
	var params fetchParams
	if err := json.Unmarshal(step.Payload, &params); err != nil {
		return nil, client.Permanent(err)
	}
	if params.Path == "" {
		return json.Marshal(builtIn)
	}
	text, err := os.ReadFile(params.Path)
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(text))
}

// look looks at the text that was fetched, in one way.
func (p *program) look(ctx context.Context, step *client.Task) ([]byte, error) {
	var params lookParams
	if err := json.Unmarshal(step.Payload, &params); err != nil {
		return nil, client.Permanent(err)
	}
	results, err := p.c.DependencyResults(ctx, step)
	if err != nil {
		return nil, err
	}
	var text string
	if err := json.Unmarshal(results["fetch"], &text); err != nil {
		return nil, client.Permanent(err)
	}
	switch params.At {
	case "lines":
		return json.Marshal(strings.Count(text, "\n"))
	case "words":
		return json.Marshal(len(strings.Fields(text)))
	case "longest":
		return json.Marshal(longest(text))
	}
	return nil, client.Permanent(fmt.Errorf("nobody knows how to look at %q", params.At))
}

// longest returns the longest word, the first of them.
func longest(text string) string {
	most := ""
	for _, word := range strings.Fields(text) {
		if word = strings.Trim(word, `.,:;"'()`); len(word) > len(most) {
			most = word
		}
	}
	return most
}

// merge puts the results of steps together.
func merge(parts map[string][]byte) ([]byte, error) {
	all := make(map[string]json.RawMessage, len(parts))
	for name, part := range parts {
		all[name] = part
	}
	return json.Marshal(all)
}
