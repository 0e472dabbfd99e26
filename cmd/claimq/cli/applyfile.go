package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/timespan"
)

// declared is the content of a file for `claimq apply`.
type declared struct {
	defaults  fields // nil: the file does not say
	types     []declaredObject
	shares    []declaredShares
	schedules []declaredObject
}

// declaredShares are the shares of a type that the file has.
type declaredShares struct {
	taskType string
	shares   []declaredObject
}

// declaredObject is a type, a share or a schedule of the file.
type declaredObject struct {
	name   string
	fields fields
}

// fields are the fields of an object, in the API's names and JSON.
type fields map[string]json.RawMessage

// declaredNodesMax bounds the values in a file, because an alias repeats what its anchor has.
const declaredNodesMax = 1_000_000

// readDeclared reads the YAML of a file. Its errors begin with the line.
func readDeclared(data []byte) (*declared, error) {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := in.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty: give defaults, types, shares or schedules")
		}
		return nil, err
	}
	if err := in.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has several documents: give one")
	}
	r := yamlReader{left: declaredNodesMax}
	var d declared
	err := r.pairs(doc.Content[0], "the file", func(key string, value *yaml.Node) (err error) {
		switch key {
		case "defaults":
			d.defaults, err = r.fields(value, key, reflect.TypeFor[wire.ServerDefaults]())
			for name, value := range d.defaults {
				if string(value) == "null" {
					return fmt.Errorf("defaults.%s must have a value", strings.TrimSuffix(name, "_ms"))
				}
			}
		case "types":
			d.types, err = r.objects(value, key, reflect.TypeFor[wire.TypeSettings]())
		case "shares":
			d.shares, err = r.shares(value, key)
		case "schedules":
			d.schedules, err = r.objects(value, key, reflect.TypeFor[wire.NewSchedule]())
		default:
			err = fmt.Errorf("%q is unknown: give defaults, types, shares or schedules", key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &d, nil
}

// yamlReader turns the nodes of a document into the API's JSON.
type yamlReader struct {
	left int // how many more nodes may be read
}

// pairs calls each for every key of a mapping and its value. Errors get the value's line.
func (r *yamlReader) pairs(n *yaml.Node, at string, each func(key string, value *yaml.Node) error) error {
	n, err := r.visit(n)
	if err != nil {
		return err
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: %s must be a mapping", n.Line, at)
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			return fmt.Errorf("line %d: a key of %s must be a text", key.Line, at)
		case key.Tag == "!!merge":
			return fmt.Errorf("line %d: merge keys (<<) are not supported", key.Line)
		case seen[key.Value]:
			return fmt.Errorf("line %d: %q is in %s twice", key.Line, key.Value, at)
		}
		seen[key.Value] = true
		if err := each(key.Value, value); err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				err = fmt.Errorf("line %d: %w", key.Line, err)
			}
			return err
		}
	}
	return nil
}

// visit counts a node, and returns what an alias stands for.
func (r *yamlReader) visit(n *yaml.Node) (*yaml.Node, error) {
	if r.left--; r.left < 0 {
		return nil, fmt.Errorf("line %d: the file has more than %d values", n.Line, declaredNodesMax)
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias, nil
	}
	return n, nil
}

// objects reads a mapping from names to objects that have the fields of the struct.
func (r *yamlReader) objects(n *yaml.Node, at string, of reflect.Type) (found []declaredObject, err error) {
	err = r.pairs(n, at, func(name string, value *yaml.Node) error {
		f, err := r.fields(value, at+"."+name, of)
		found = append(found, declaredObject{name, f})
		return err
	})
	return found, err
}

// shares reads a mapping from types to their shares.
func (r *yamlReader) shares(n *yaml.Node, at string) (found []declaredShares, err error) {
	err = r.pairs(n, at, func(taskType string, value *yaml.Node) error {
		shares, err := r.objects(value, at+"."+taskType, reflect.TypeFor[wire.ShareSettings]())
		found = append(found, declaredShares{taskType, shares})
		return err
	})
	return found, err
}

// fields reads an object that has the fields of the struct, which has the API's names. Durations are written without
// the ending _ms, as on the command line.
func (r *yamlReader) fields(n *yaml.Node, at string, of reflect.Type) (fields, error) {
	found := fields{}
	if n.Tag == "!!null" {
		return found, nil
	}
	types := jsonFields(of)
	err := r.pairs(n, at, func(key string, value *yaml.Node) error {
		name, fieldType := key, types[key]
		isDuration := false
		if ms, ok := types[key+"_ms"]; ok {
			name, fieldType, isDuration = key+"_ms", ms, true
		}
		if fieldType == nil || strings.HasSuffix(key, "_ms") {
			return fmt.Errorf("%s.%s is unknown: there are %s", at, key, strings.Join(declaredNames(types), ", "))
		}
		var err error
		if isDuration {
			found[name], err = r.duration(value, at+"."+key, key)
		} else {
			found[name], err = r.value(value, at+"."+key, fieldType)
		}
		return err
	})
	return found, err
}

// jsonFields returns the fields of a struct, and of what it embeds, by their names in JSON.
func jsonFields(of reflect.Type) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "" {
			found[name] = f.Type
		}
	}
	return found
}

// declaredNames returns the names of fields in a file.
func declaredNames(types map[string]reflect.Type) []string {
	names := slices.Sorted(maps.Keys(types))
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, "_ms")
	}
	return names
}

// value reads a value whose field has the type.
func (r *yamlReader) value(n *yaml.Node, at string, of reflect.Type) (json.RawMessage, error) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	isList := of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct
	isObject := of.Kind() == reflect.Struct && of.PkgPath() == reflect.TypeFor[wire.NewTask]().PkgPath()
	switch {
	case n.Tag == "!!null":
		return json.RawMessage("null"), nil
	case isObject:
		f, err := r.fields(n, at, of)
		if err != nil {
			return nil, err
		}
		return json.Marshal(f)
	case !isList:
		return r.json(n, at)
	}
	n, err := r.visit(n)
	if err != nil {
		return nil, err
	}
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("line %d: %s must be a list", n.Line, at)
	}
	list := make([]json.RawMessage, len(n.Content))
	for i, element := range n.Content {
		if list[i], err = r.value(element, fmt.Sprintf("%s[%d]", at, i), of.Elem()); err != nil {
			return nil, err
		}
	}
	return json.Marshal(list)
}

// duration reads a duration as the command line has it.
func (r *yamlReader) duration(n *yaml.Node, at, key string) (json.RawMessage, error) {
	n, err := r.visit(n)
	if err != nil {
		return nil, err
	}
	if n.Tag == "!!null" {
		return json.RawMessage("null"), nil
	}
	mayStay := strings.HasSuffix(key, "retention")
	if n.Kind == yaml.ScalarNode && mayStay && n.Value == "forever" {
		return json.RawMessage("-1"), nil
	}
	must := "a time as 30s, 2m or 7d"
	if mayStay {
		must += ", 0 (gone at once) or forever"
	}
	if n.Kind == yaml.ScalarNode {
		if d, err := timespan.Parse(n.Value); err == nil && d >= 0 {
			if ms, err := wholeMS(at, d); err == nil {
				return json.Marshal(ms)
			}
		}
	}
	return nil, fmt.Errorf("line %d: %s is %q: it must be %s", n.Line, at, term.CutTo(term.Printable(n.Value), 40), must)
}

// json turns any value into JSON. Keys keep their order, and numbers and dates are as they are written.
func (r *yamlReader) json(n *yaml.Node, at string) (json.RawMessage, error) {
	n, err := r.visit(n)
	if err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.MappingNode:
		b := []byte{'{'}
		err := r.pairs(n, at, func(key string, value *yaml.Node) error {
			v, err := r.json(value, at+"."+key)
			if err != nil {
				return err
			}
			k, err := json.Marshal(key)
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(append(b, k...), ':'), v...)
			return err
		})
		return append(b, '}'), err
	case yaml.SequenceNode:
		b := []byte{'['}
		for i, element := range n.Content {
			v, err := r.json(element, fmt.Sprintf("%s[%d]", at, i))
			if err != nil {
				return nil, err
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, v...)
		}
		return append(b, ']'), nil
	}
	switch n.ShortTag() {
	case "!!null":
		return json.RawMessage("null"), nil
	case "!!int", "!!float", "!!bool":
		if json.Valid([]byte(n.Value)) {
			return json.RawMessage(n.Value), nil
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, err
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s is %s, which JSON does not have", n.Line, at, n.Value)
		}
		return text, nil
	default:
		return json.Marshal(n.Value)
	}
}
