package api

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/wire"
)

const pythonFile = "../clients/python/src/claimq/types.py"

// The types of the Python client agree with openapi.yaml.
func TestPython_types(t *testing.T) {
	t.Parallel()
	want := (&pythonTypes{reference: readDescription(t), used: map[string]bool{}}).module()
	if *update {
		if err := os.WriteFile(pythonFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pythonFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("%s is not what `go test ./api -run Python_types -update` writes (-is +should be):\n%s", pythonFile, diff)
	}
}

// pythonTypes writes the types of the Python client: a TypedDict for each object, and a Literal for each named list
// of values.
type pythonTypes struct {
	*reference
	used    map[string]bool // the schemas that are referred to
	classes strings.Builder
}

const pythonHead = `"""The objects of the HTTP API, as they are sent and answered.

Made from api/openapi.yaml by ` + "`go test ./api -run Python_types -update`" + `; do not edit.
Names that end in _ms are milliseconds, times are RFC 3339 in UTC. At run time each object is
a plain dict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict, Union

JSON = Any
"""Any JSON value."""
`

// pythonTags are the parts of the API in the Python client.
var pythonTags = []string{"tasks", "claims", "seeing", "types", "schedules"}

func (p *pythonTypes) module() string {
	for _, o := range p.operations() {
		if slices.Contains(pythonTags, text(p.items(o.get("tags"))[0])) {
			p.operation(o)
		}
	}
	inline := p.classes.String()
	p.classes.Reset()
	// Used schemas may use others.
	schemas := p.path(p.root, "components", "schemas")
	p.used["Refusal"] = true
	written := map[string]bool{}
	var aliases strings.Builder
	for before := -1; before < len(written); {
		before = len(written)
		for name, schema := range p.fields(schemas) {
			if !p.used[name] || written[name] {
				continue
			}
			written[name] = true
			if p.get(schema, "properties") != nil {
				p.class(name, schema)
				continue
			}
			fmt.Fprintf(&aliases, "\n%s = %s\n%s", name, p.typeOf(name, "", schema), docstring("", text(p.get(schema, "description"))))
		}
	}
	var out strings.Builder
	out.WriteString(pythonHead + p.classes.String() + inline + "\n" + aliases.String())
	out.WriteString("\nSTATUS: Final[Mapping[str, int]] = {\n")
	for _, code := range p.items(p.path(schemas, "Code", "enum")) {
		fmt.Fprintf(&out, "    %q: %d,\n", code.Value, wire.Code(code.Value).Status())
	}
	out.WriteString("}\n\"\"\"The HTTP status of each code.\"\"\"\n")
	return out.String()
}

// operation writes the unnamed types of a call's parameters and answers.
func (p *pythonTypes) operation(o *operation) {
	name := camel(text(o.get("operationId")))
	content := func(n *yaml.Node) *yaml.Node { return p.get(p.path(n, "content", "application/json"), "schema") }
	if body := content(o.get("requestBody")); body != nil {
		p.typeOf(name+"Body", "", body)
	}
	for _, status := range []string{"200", "201"} {
		if answer := content(p.get(o.get("responses"), status)); answer != nil {
			p.typeOf(name+"Answer", "", answer)
			if p.named(answer) == "" {
				return // they are identical
			}
		}
	}
}

// class writes an object.
func (p *pythonTypes) class(name string, n *yaml.Node) {
	var fields strings.Builder
	required := p.items(p.get(n, "required"))
	for field, schema := range p.fields(p.get(n, "properties")) {
		if field == "return" || field == "from" {
			continue // keywords, which a class cannot have as fields
		}
		kind := p.typeOf(name, field, schema)
		if !slices.ContainsFunc(required, func(r *yaml.Node) bool { return r.Value == field }) {
			kind = "NotRequired[" + kind + "]"
		}
		fmt.Fprintf(&fields, "    %s: %s\n%s", field, kind, docstring("    ", p.description(schema)))
	}
	about := text(p.get(n, "description"))
	if about == "" {
		about = "An object of the API."
	}
	fmt.Fprintf(&p.classes, "\n\nclass %s(TypedDict):\n%s\n%s", name, docstring("    ", about), fields.String())
}

// description returns a field's description, its own or that of its schema.
func (p *pythonTypes) description(n *yaml.Node) string {
	if own := text(p.get(n, "description")); own != "" || p.named(n) == "" {
		return own
	}
	if target := p.resolve(n); !p.isObject(target) {
		return text(p.get(target, "description"))
	}
	return ""
}

// typeOf returns the Python type of a schema. An unnamed object gets a name from owner and field.
func (p *pythonTypes) typeOf(owner, field string, n *yaml.Node) string {
	if name := p.named(n); name != "" {
		target := p.resolve(n)
		if p.isObject(target) || len(p.items(p.get(target, "enum"))) > 1 {
			name, isNull := strings.CutSuffix(name, "OrNull")
			p.used[name] = true
			if isNull {
				return name + " | None"
			}
			return name
		}
		n = target
	}
	kind := p.plain(owner, field, n)
	if text(p.get(n, "nullable")) == "true" {
		kind += " | None"
	}
	return kind
}

func (p *pythonTypes) plain(owner, field string, n *yaml.Node) string {
	for _, choice := range []string{"oneOf", "anyOf"} {
		if arms := p.items(p.get(n, choice)); arms != nil {
			var kinds []string
			for _, arm := range arms {
				kinds = append(kinds, p.typeOf(owner, field, arm))
			}
			return "Union[" + strings.Join(kinds, ", ") + "]"
		}
	}
	if enum := p.items(p.get(n, "enum")); enum != nil {
		return literal(enum)
	}
	switch kind := text(p.get(n, "type")); kind {
	case "string":
		return "str"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "boolean":
		return "bool"
	case "array":
		return "list[" + p.typeOf(owner, field, p.get(n, "items")) + "]"
	case "object":
		if of := p.get(n, "additionalProperties"); of != nil && of.Kind == yaml.MappingNode {
			return "dict[str, " + p.typeOf(owner, field, of) + "]"
		}
		if p.get(n, "properties") == nil {
			return "dict[str, JSON]"
		}
		name := owner + camel(field)
		p.class(name, n)
		return name
	}
	return "JSON"
}

func literal(enum []*yaml.Node) string {
	var values []string
	for _, v := range enum {
		switch v.Tag {
		case "!!null": // covered by nullable
		case "!!bool":
			values = append(values, strings.ToUpper(v.Value[:1])+v.Value[1:])
		case "!!int":
			values = append(values, v.Value)
		default:
			values = append(values, fmt.Sprintf("%q", v.Value))
		}
	}
	return "Literal[" + strings.Join(values, ", ") + "]"
}

// camel converts a name of the API to a Python class name.
func camel(name string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "" {
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return out.String()
}

// docstring formats words as a docstring.
func docstring(indent, words string) string {
	if words == "" {
		return ""
	}
	words = strings.NewReplacer(`\`, `\\`, `"""`, `'''`).Replace(words)
	if strings.HasSuffix(words, `"`) {
		words += " "
	}
	const width = 92
	line, out := indent+`"""`, ""
	for i, word := range strings.Fields(words) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) > width:
			out += line + "\n"
			line = indent + word
		default:
			line += " " + word
		}
	}
	return out + line + "\"\"\"\n"
}
