package fuzz

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// operation is a call in the description.
type operation struct {
	name   string // "METHOD /path", but for clients of SQS the name of their call
	method string // upper case
	path   string // with {variables}
	query  []parameter
	header string   // lines that the call needs
	bodies [][]byte // examples, each a JSON object, or a form of SQS; none: the call has no body
}

// parameter is a query parameter with valid values.
type parameter struct {
	name   string
	values []string
}

// errDescription is returned when no requests can be derived from the description.
var errDescription = errors.New("the description of the API")

// describe reads the operations from a node's /openapi.json, ordered by path and method.
func describe(ctx context.Context, node Node) ([]operation, error) {
	var text json.RawMessage
	if err := node.Ask(ctx, http.MethodGet, "/openapi.json", nil, &text); err != nil {
		return nil, fmt.Errorf("%w: %w", errDescription, err)
	}
	return parse(text)
}

// parse reads the operations from a description in JSON.
func parse(text []byte) ([]operation, error) {
	d, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDescription, err)
	}
	var ops []operation
	for path, item := range d.Paths.Map() {
		for method, op := range item.Operations() {
			ops = append(ops, operationOf(method, path, op))
		}
	}
	if len(ops) == 0 {
		return nil, fmt.Errorf("%w: it has no operations", errDescription)
	}
	slices.SortFunc(ops, func(a, b operation) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method)) })
	return ops, nil
}

func operationOf(method, path string, op *openapi3.Operation) operation {
	o := operation{name: method + " " + path, method: method, path: path}
	for _, p := range op.Parameters {
		if p.Value.In == openapi3.ParameterInQuery {
			o.query = append(o.query, parameter{p.Value.Name, values(p.Value)})
		}
	}
	if op.RequestBody == nil {
		return o
	}
	content := op.RequestBody.Value.Content
	for _, mime := range slices.Sorted(maps.Keys(content)) {
		media := content[mime]
		for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
			o.addBody(media.Examples[name].Value.Value)
		}
		o.addBody(media.Example)
	}
	if len(o.bodies) == 0 {
		o.bodies = [][]byte{[]byte("{}")}
	}
	return o
}

func (o *operation) addBody(example any) {
	if b, err := json.Marshal(example); err == nil && example != nil {
		o.bodies = append(o.bodies, b)
	}
}

// values returns valid values of a parameter.
func values(p *openapi3.Parameter) []string {
	schema := p.Schema.Value
	if schema.Items != nil {
		schema = schema.Items.Value
	}
	fit := append([]any{schema.Example}, schema.Enum...)
	if list, ok := p.Example.([]any); ok {
		fit = append(fit, list...)
	} else {
		fit = append(fit, p.Example)
	}
	switch {
	case schema.Type.Is(openapi3.TypeInteger):
		fit = append(fit, 1, 7, 100)
	case schema.Type.Is(openapi3.TypeBoolean):
		fit = append(fit, true, false)
	case schema.Format == "date-time":
		fit = append(fit, "2029-01-02T03:04:05Z")
	}
	var values []string
	for _, v := range fit {
		if v != nil {
			values = append(values, fmt.Sprint(v))
		}
	}
	if len(values) == 0 {
		values = []string{"mail"}
	}
	return values
}
