package openapitest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Checker checks against the description of an API. Its methods are safe for concurrent use.
type Checker struct {
	doc   *openapi3.T
	paths []path // paths without variables come first
}

// path is a path of the description, split at its slashes.
type path struct {
	parts []string
	item  *openapi3.PathItem
	// rest says that the last part, a variable, matches the rest of the path including slashes.
	rest bool
}

// Operation is one operation of the description.
type Operation struct{ Method, Path, ID string }

// New returns a Checker for a description in JSON. It fails if that is not a valid OpenAPI document, including its
// examples.
func New(description []byte) (*Checker, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(description)
	if err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validate the description: %w", err)
	}
	c := &Checker{doc: doc}
	for template, item := range doc.Paths.Map() {
		p := path{parts: strings.Split(template, "/"), item: item}
		for _, param := range item.Parameters {
			if param.Value.Extensions["x-slashes"] == true {
				p.rest = true
			}
		}
		c.paths = append(c.paths, p)
	}
	sort.Slice(c.paths, func(i, j int) bool { return c.paths[i].variables() < c.paths[j].variables() })
	return c, nil
}

// Version returns the version named in the description.
func (c *Checker) Version() string { return c.doc.Info.Version }

// Operations returns every operation, in no order.
func (c *Checker) Operations() []Operation {
	var all []Operation
	for template, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, Operation{Method: method, Path: template, ID: op.OperationID})
		}
	}
	return all
}

// Example is an example of a request's body in the description.
type Example struct {
	Operation
	Body []byte
}

// Examples returns all examples of request bodies, in no order.
func (c *Checker) Examples() ([]Example, error) {
	var all []Example
	for template, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			content := op.RequestBody.Value.Content["application/json"]
			if content == nil {
				continue // a backup
			}
			bodies := []any{content.Example}
			for _, example := range content.Examples {
				bodies = append(bodies, example.Value.Value)
			}
			for _, body := range bodies {
				if body == nil {
					continue
				}
				text, err := json.Marshal(body)
				if err != nil {
					return nil, fmt.Errorf("write an example of %s: %w", op.OperationID, err)
				}
				all = append(all, Example{Operation{Method: method, Path: template, ID: op.OperationID}, text})
			}
		}
	}
	return all, nil
}

// Codes returns the codes named in the description.
func (c *Checker) Codes() []string {
	var codes []string
	for _, code := range c.doc.Components.Schemas["Code"].Value.Enum {
		codes = append(codes, fmt.Sprint(code))
	}
	return codes
}

func (p *path) variables() int {
	n := 0
	for _, part := range p.parts {
		if strings.HasPrefix(part, "{") {
			n++
		}
	}
	return n
}

// find returns the path that matches a target, or nil.
func (c *Checker) find(target string) *path {
	parts := strings.Split(target, "/")
	for i := range c.paths {
		if c.paths[i].matches(parts) {
			return &c.paths[i]
		}
	}
	return nil
}

func (p *path) matches(parts []string) bool {
	if len(parts) < len(p.parts) || len(parts) > len(p.parts) && !p.rest {
		return false
	}
	for i, part := range p.parts {
		if part != parts[i] && !strings.HasPrefix(part, "{") {
			return false
		}
	}
	return true
}

// operation returns the operation of a method, or nil. HEAD is treated as GET.
func (p *path) operation(method string) *openapi3.Operation {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return p.item.Operations()[method]
}
