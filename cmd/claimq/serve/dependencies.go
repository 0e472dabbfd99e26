package serve

import (
	"context"
	"encoding/json"

	"github.com/claimq/claimq/client"
)

// dependenciesMax bounds the results of a step's dependencies, together.
const dependenciesMax = 4 << 20

// Result is the result of a step as programs get it. It is JSON or bytes; a step may have none.
type Result struct {
	Result        json.RawMessage `json:"result,omitempty"`
	ResultPayload []byte          `json:"result_payload,omitempty"` // base64
}

// Dependencies returns the results of the steps that the step t depends on, by name. If they have
// more than 4 MiB together it returns none, and tooLarge. Errors: as client.Client.Dependencies.
func Dependencies(ctx context.Context, c *client.Client, t *client.Task) (results map[string]Result, tooLarge bool, err error) {
	steps, err := c.Dependencies(ctx, t)
	if err != nil {
		return nil, false, err
	}
	size := 0
	results = make(map[string]Result, len(steps))
	for name, step := range steps {
		size += len(step.Result)
		if step.ResultBinary {
			results[name] = Result{ResultPayload: step.Result}
		} else {
			results[name] = Result{Result: step.Result}
		}
	}
	if size > dependenciesMax {
		return nil, true, nil
	}
	return results, false, nil
}
