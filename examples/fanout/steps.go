package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/claimq/claimq/client"
)

// These are the types of the steps. A worker could claim only one of them.
const (
	fetchType = "fanout.fetch"
	lookType  = "fanout.look"
	mergeType = "fanout.merge"
)

type fetchParams struct {
	Path string `json:"path"` // "": a built-in text
}

type lookParams struct {
	At string `json:"at"` // lines, words or longest
}

const builtIn = `Two workers saw a task go by.
"It's mine", said one, "my token's high."
The other looked at his, a while,
and let it go: his lease had died.
`

// fetch returns the text.
func fetch(_ context.Context, job *client.Job[fetchParams]) (any, error) {
	if job.Params.Path == "" {
		return builtIn, nil
	}
	text, err := os.ReadFile(job.Params.Path)
	return string(text), err
}

// look examines the fetched text in one way.
func (p *program) look(ctx context.Context, job *client.Job[lookParams]) (any, error) {
	results, err := p.c.DependencyResults(ctx, job.Task)
	if err != nil {
		return nil, err
	}
	var text string
	if err := json.Unmarshal(results["fetch"], &text); err != nil {
		return nil, client.Permanent(err)
	}
	switch job.Params.At {
	case "lines":
		return strings.Count(text, "\n"), nil
	case "words":
		return len(strings.Fields(text)), nil
	case "longest":
		return longest(text), nil
	}
	return nil, client.Permanent(fmt.Errorf("no way is known to look at %q", job.Params.At))
}

// merge merges the results of the looks.
func (p *program) merge(ctx context.Context, job *client.Job[struct{}]) (any, error) {
	parts, err := p.c.DependencyResults(ctx, job.Task)
	if err != nil {
		return nil, err
	}
	return merge(parts)
}

// longest returns the longest word, and the first one of that length.
func longest(text string) string {
	most := ""
	for _, word := range strings.Fields(text) {
		if word = strings.Trim(word, `.,:;"'()`); len(word) > len(most) {
			most = word
		}
	}
	return most
}

func merge(parts map[string][]byte) ([]byte, error) {
	all := make(map[string]json.RawMessage, len(parts))
	for name, part := range parts {
		all[name] = part
	}
	return json.Marshal(all)
}
