package fuzz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// operation is one call of the description.
type operation struct {
	method string // upper case
	path   string // with {variables}
	query  []parameter
	bodies [][]byte // examples, each a JSON object; none: the call has no body
}

// parameter is a query parameter with values that fit.
type parameter struct {
	name   string
	values []string
}

// errDescription is returned when the description is none that requests can be
// made from.
var errDescription = errors.New("the description of the API")

// describe reads the operations from a node's /openapi.json, in the order of
// their paths and methods.
func describe(ctx context.Context, node Node) ([]operation, error) {
	var text json.RawMessage
	if err := node.Ask(ctx, http.MethodGet, "/openapi.json", nil, &text); err != nil {
		return nil, fmt.Errorf("%w: %w", errDescription, err)
	}
	return parse(text)
}

// parse reads the operations from a description in JSON.
func parse(text []byte) ([]operation, error) {
	var d document
	if err := json.Unmarshal(text, &d.root); err != nil {
		return nil, fmt.Errorf("%w: %w", errDescription, err)
	}
	var ops []operation
	paths := d.object(d.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := d.object(paths[path])
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			if op := d.object(item[method]); op != nil {
				ops = append(ops, d.operation(method, path, op))
			}
		}
	}
	if len(ops) == 0 {
		return nil, fmt.Errorf("%w: it has no operations", errDescription)
	}
	return ops, nil
}

// document is a description, and finds what references in it point to.
type document struct{ root map[string]any }

// object returns v as an object, what it points to if it is a reference, nil if
// it is no object.
func (d *document) object(v any) map[string]any {
	o, _ := v.(map[string]any)
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	var at any = d.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		next, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = next[part]
	}
	o, _ = at.(map[string]any)
	return o
}

func (d *document) operation(method, path string, op map[string]any) operation {
	o := operation{method: strings.ToUpper(method), path: path}
	params, _ := op["parameters"].([]any)
	for _, v := range params {
		p := d.object(v)
		if name, _ := p["name"].(string); name != "" && p["in"] == "query" {
			o.query = append(o.query, parameter{name, d.values(p)})
		}
	}
	content := d.object(d.object(op["requestBody"])["content"])
	for _, mime := range slices.Sorted(maps.Keys(content)) {
		media := d.object(content[mime])
		examples := d.object(media["examples"])
		for _, name := range slices.Sorted(maps.Keys(examples)) {
			o.addBody(d.object(examples[name])["value"])
		}
		o.addBody(media["example"])
		if len(o.bodies) == 0 {
			o.bodies = [][]byte{[]byte("{}")}
		}
	}
	return o
}

func (o *operation) addBody(example any) {
	if b, err := json.Marshal(example); err == nil && example != nil {
		o.bodies = append(o.bodies, b)
	}
}

// values returns values that fit a parameter.
func (d *document) values(p map[string]any) []string {
	schema := d.object(p["schema"])
	if items := d.object(schema["items"]); items != nil {
		schema = items
	}
	var values []string
	add := func(v any) {
		switch v := v.(type) {
		case nil:
		case []any:
			for _, e := range v {
				values = append(values, fmt.Sprint(e))
			}
		default:
			values = append(values, fmt.Sprint(v))
		}
	}
	add(p["example"])
	add(schema["enum"])
	add(schema["example"])
	switch schema["type"] {
	case "integer":
		values = append(values, "1", "7", "100")
	case "boolean":
		values = append(values, "true", "false")
	}
	if schema["format"] == "date-time" {
		values = append(values, "2029-01-02T03:04:05Z")
	}
	if len(values) == 0 {
		values = []string{"mail"}
	}
	return values
}
