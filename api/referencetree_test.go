package api

import (
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reference writes the pages of referencePages from the description. It reads openapi.yaml as a tree, because a map would lose the
// order of fields.
type reference struct {
	root      *yaml.Node
	objects   map[string]bool // the schemas that the pages so far link to
	described map[string]bool // those that have a section
}

// operation is one call, with the parameters of its path.
type operation struct {
	r            *reference
	method, path string
	node, item   *yaml.Node
}

func (o *operation) get(name string) *yaml.Node { return o.r.get(o.node, name) }

// operations returns every call in the order of the description.
func (r *reference) operations() []*operation {
	var all []*operation
	for path, item := range r.fields(r.get(r.root, "paths")) {
		for method, node := range r.fields(item) {
			if method != "parameters" {
				all = append(all, &operation{r, strings.ToUpper(method), path, node, item})
			}
		}
	}
	return all
}

// alias returns the target of a YAML alias.
func alias(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// fields walks a mapping in its order. Merged fields come where they are merged, with the mapping's own value if it
// has one.
func (r *reference) fields(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		n = alias(n)
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		own, merged := map[string]*yaml.Node{}, map[string]bool{}
		for i := 0; i < len(n.Content); i += 2 {
			own[n.Content[i].Value] = alias(n.Content[i+1])
		}
		for i := 0; i < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if name != "<<" && !merged[name] && !yield(name, own[name]) {
				return
			}
			if name != "<<" {
				continue
			}
			for name, value := range r.fields(own["<<"]) {
				merged[name] = true
				if own[name] != nil {
					value = own[name]
				}
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

// get returns the value of a name, or nil.
func (r *reference) get(n *yaml.Node, name string) *yaml.Node {
	for have, value := range r.fields(n) {
		if have == name {
			return value
		}
	}
	return nil
}

// path follows names and references, and returns the value or nil.
func (r *reference) path(n *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		n = r.get(r.resolve(n), name)
	}
	return r.resolve(n)
}

// items returns the elements of a sequence.
func (r *reference) items(n *yaml.Node) []*yaml.Node {
	n = alias(n)
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	all := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		all[i] = alias(item)
	}
	return all
}

// resolve follows a reference.
func (r *reference) resolve(n *yaml.Node) *yaml.Node {
	n = alias(n)
	if ref := text(r.get(n, "$ref")); ref != "" {
		return r.path(r.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return n
}

// named returns the name of the schema that n refers to, or "".
func (r *reference) named(n *yaml.Node) string {
	return strings.TrimPrefix(text(r.get(n, "$ref")), "#/components/schemas/")
}

// example returns an example of a body, the first of several.
func (r *reference) example(content *yaml.Node) *yaml.Node {
	if e := r.get(content, "example"); e != nil {
		return e
	}
	for _, e := range r.fields(r.get(content, "examples")) {
		return r.get(e, "value")
	}
	return r.path(content, "schema", "example")
}

// text returns a scalar's text; "" for nil and null.
func text(n *yaml.Node) string {
	n = alias(n)
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return strings.TrimSpace(n.Value)
}
