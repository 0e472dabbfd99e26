package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fileBytesMax bounds a file of settings or keys; 10,000 keys take 2 MiB.
const fileBytesMax = 8 << 20

// readYAML returns the mapping in the file, nil for an empty file.
func readYAML(path string) (*yaml.Node, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(content) > fileBytesMax {
		return nil, fmt.Errorf("%s is over %s", path, FormatBytes(fileBytesMax))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: it must be one YAML document", path)
	}
	root := resolve(document.Content[0])
	if isNull(root) {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: it must be a mapping of settings to values, as node_id: n1", path)
	}
	return root, nil
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// readFile applies the settings in the file at path. An error concerns the file as a whole.
func (l *loader) readFile(path string) error {
	root, err := readYAML(path)
	if err != nil {
		return err
	}
	if root != nil {
		f := fileReader{loader: l, path: path}
		f.mapping("", root)
	}
	return nil
}

// fileReader walks a file of settings.
type fileReader struct {
	*loader
	path string
}

func (f *fileReader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", f.path, n.Line) }

// entries calls fn for each entry of m, and records duplicates as mistakes.
func (f *fileReader) entries(m *yaml.Node, fn func(key, value *yaml.Node)) {
	seen := make(map[string]bool, len(m.Content)/2)
	for i := 0; i+1 < len(m.Content); i += 2 {
		key := m.Content[i]
		if seen[key.Value] {
			f.mistake("%s: %s is there twice", f.at(key), key.Value)
			continue
		}
		seen[key.Value] = true
		fn(key, resolve(m.Content[i+1]))
	}
}

// mapping applies the settings in m; prefix is the level above it with a dot, or empty.
func (f *fileReader) mapping(prefix string, m *yaml.Node) {
	f.entries(m, func(key, value *yaml.Node) {
		name := prefix + key.Value
		d := find(f.all, name)
		switch {
		case isNull(value) && (d != nil || name == keysName || name == rolesName || f.isLevel(name)):
			// As if it were absent.
		case name == keysName:
			f.keys(value)
		case name == rolesName:
			f.tokenRoles(value)
		case d != nil:
			f.setting(d, value)
		case f.isLevel(name) && value.Kind == yaml.MappingNode:
			f.mapping(name+".", value)
		case f.isLevel(name):
			f.mistake("%s: %s must be a mapping of its settings", f.at(value), name)
		default:
			f.mistake("%s: %s", f.at(key), unknown("setting", name, f.names()))
		}
	})
}

// isLevel reports whether there are settings below name.
func (f *fileReader) isLevel(name string) bool {
	for i := range f.all {
		if strings.HasPrefix(f.all[i].name, name+".") {
			return true
		}
	}
	return false
}

// names returns the names that a file may contain, including levels.
func (f *fileReader) names() []string {
	names := []string{keysName, rolesName}
	for i := range f.all {
		name := f.all[i].name
		if level, _, ok := strings.Cut(name, "."); ok && names[len(names)-1] != level {
			names = append(names, level)
		}
		names = append(names, name)
	}
	return names
}

func (f *fileReader) setting(d *setting, value *yaml.Node) {
	origin := Origin{FromFile, f.path}
	_, isList := d.value(&f.loaded.Server).(*list)
	switch {
	case value.Kind == yaml.ScalarNode:
		f.set(d, origin, f.at(value), value.Value)
	case value.Kind == yaml.SequenceNode && isList:
		if texts, ok := f.texts(d.name, value); ok {
			f.set(d, origin, f.at(value), append(texts, "")...) // an empty list is a list, too
		}
	case isList:
		f.mistake("%s: %s must be a list", f.at(value), d.name)
	default:
		f.mistake("%s: %s must be one value, not several", f.at(value), d.name)
	}
}

// texts returns the elements of a list of scalars.
func (f *fileReader) texts(name string, sequence *yaml.Node) (texts []string, ok bool) {
	for _, e := range sequence.Content {
		e = resolve(e)
		if e.Kind != yaml.ScalarNode || isNull(e) {
			f.mistake("%s: each element of %s must be one value", f.at(e), name)
			return nil, false
		}
		texts = append(texts, e.Value)
	}
	return texts, true
}
