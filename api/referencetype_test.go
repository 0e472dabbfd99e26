package api

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// typeOf describes in words what a schema allows; for answers it leaves out the bounds. A named object becomes a
// link.
func (r *reference) typeOf(n *yaml.Node, sent bool) string {
	if name := r.named(n); name != "" && r.isObject(r.resolve(n)) {
		r.objects[name] = true
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	}
	n = r.resolve(n)
	words := r.plainType(n, sent)
	if text(r.get(n, "nullable")) == "true" {
		words += " or null"
	}
	return words
}

// isObject reports whether a schema has fields, or is one of several that have.
func (r *reference) isObject(n *yaml.Node) bool {
	return r.get(n, "properties") != nil || r.get(n, "oneOf") != nil || r.get(n, "anyOf") != nil || r.get(n, "allOf") != nil
}

func (r *reference) plainType(n *yaml.Node, sent bool) string {
	for _, choice := range []string{"oneOf", "anyOf"} {
		if some := r.get(n, choice); some != nil {
			return r.alternatives(some, sent)
		}
	}
	if enum := r.items(r.get(n, "enum")); enum != nil {
		return oneOf(enum)
	}
	switch kind := text(r.get(n, "type")); kind {
	case "":
		return "any JSON"
	case "string":
		return r.stringType(n, sent)
	case "integer", "number":
		if span := r.span(n, "minimum", "maximum"); span != "" && sent {
			return kind + ", " + span
		}
		return kind
	case "array":
		of := "of " + r.typeOf(r.get(n, "items"), sent)
		if span := r.span(n, "minItems", "maxItems"); span != "" && sent {
			of = "of " + span + ": " + strings.TrimPrefix(of, "of ")
		}
		return "array " + of
	case "object":
		if of := r.get(n, "additionalProperties"); of != nil && of.Kind == yaml.MappingNode {
			words := kind + " of any names: " + r.typeOf(of, sent)
			if most := text(r.get(n, "maxProperties")); most != "" && sent {
				words = strings.Replace(words, "any", "up to "+most, 1)
			}
			return words
		}
		return kind
	default:
		return kind
	}
}

func (r *reference) stringType(n *yaml.Node, sent bool) string {
	switch text(r.get(n, "format")) {
	case "date-time":
		return "time"
	case "byte":
		return "base64"
	}
	span := r.span(n, "minLength", "maxLength")
	if span == "" || !sent {
		return "string"
	}
	words := "string, " + span
	pattern := text(r.get(n, "pattern"))
	if set, ok := strings.CutPrefix(pattern, "^["); ok && strings.HasSuffix(set, "]+$") {
		words += " of `" + strings.TrimSuffix(set, "]+$") + "`"
	}
	return words
}

// span describes the range of a number or a length.
func (r *reference) span(n *yaml.Node, least, most string) string {
	from, to := grouped(text(r.get(n, least))), grouped(text(r.get(n, most)))
	switch {
	case from != "" && to != "":
		return from + " to " + to
	case from != "":
		return "from " + from
	case to != "":
		return "up to " + to
	}
	return ""
}

// grouped formats a number without an exponent.
func grouped(number string) string {
	if f, err := strconv.ParseFloat(number, 64); err == nil {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return number
}

// oneOf lists the values of an enum.
func oneOf(enum []*yaml.Node) string {
	var values []string
	for _, v := range enum {
		if v.Tag == "!!null" {
			continue // covered by nullable
		}
		values = append(values, "`"+v.Value+"`")
	}
	return listed(values)
}

func (r *reference) alternatives(n *yaml.Node, sent bool) string {
	var some []string
	for _, one := range r.items(n) {
		some = append(some, r.typeOf(one, sent))
	}
	return listed(some)
}

// listed joins alternatives.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// width bounds the length of a line of an example.
const width = 130

// sample formats an example as JSON, on one line if it fits.
func (r *reference) sample(n *yaml.Node, indent int) string {
	line := r.line(n)
	if len(line)+indent <= width || n.Kind == yaml.ScalarNode {
		return line
	}
	pad := strings.Repeat(" ", indent+2)
	var parts []string
	begin, end := "{", "}"
	if n.Kind == yaml.SequenceNode {
		begin, end = "[", "]"
		for _, item := range r.items(n) {
			parts = append(parts, r.sample(item, indent+2))
		}
		return begin + "\n" + pad + strings.Join(parts, ",\n"+pad) + "\n" + pad[2:] + end
	}
	// Short fields share a line.
	var lines []string
	for name, value := range r.fields(n) {
		part := strconv.Quote(name) + ": " + r.sample(value, indent+2)
		if last := len(lines) - 1; last >= 0 && !strings.Contains(part+lines[last], "\n") && len(lines[last])+len(part)+indent+4 <= width {
			lines[last] += ", " + part
			continue
		}
		lines = append(lines, part)
	}
	return begin + "\n" + pad + strings.Join(lines, ",\n"+pad) + "\n" + pad[2:] + end
}

// line formats an example as JSON on one line.
func (r *reference) line(n *yaml.Node) string {
	n = alias(n)
	switch n.Kind {
	case yaml.MappingNode:
		var parts []string
		for name, value := range r.fields(n) {
			parts = append(parts, strconv.Quote(name)+": "+r.line(value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		var parts []string
		for _, item := range r.items(n) {
			parts = append(parts, r.line(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if n.Tag == "!!str" || n.Tag == "!!timestamp" {
		return strconv.Quote(n.Value)
	}
	return n.Value
}
