package kind

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// keyBytesMax is the longest idempotency key that the server takes.
const keyBytesMax = 256

// field is one of those that make the key.
type field struct {
	name  string // in the JSON
	index []int  // as reflect.Value.FieldByIndex takes it
}

// uniqueFields returns the fields of P that are tagged as unique, in their order: of a
// struct or of what it points to, with those of the structs that are embedded in it.
func uniqueFields[P any]() ([]field, error) {
	t := reflect.TypeFor[P]()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("claimq")
		if !ok {
			continue
		}
		if tag != "unique" {
			return nil, fmt.Errorf(`field %s has the tag claimq:%q, it must be claimq:"unique"`, f.Name, tag)
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "-" || !f.IsExported() {
			return nil, fmt.Errorf("field %s is unique, but not in the JSON of the parameters", f.Name)
		}
		if name == "" {
			name = f.Name
		}
		fields = append(fields, field{name: name, index: f.Index})
	}
	return fields, nil
}

// errNilParams is returned when there is nothing to make a key of.
var errNilParams = errors.New("the params are nil")

// uniqueKey returns the idempotency key of params: the type and the JSON of the fields, so
// that a reader sees what it is about, or where that is too long its hash. A type has neither a
// brace nor a hash sign in it, so no two kinds have a key in common.
func uniqueKey(taskType string, fields []field, params any) (string, error) {
	v := reflect.ValueOf(params)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", errNilParams
		}
		v = v.Elem()
	}
	var b bytes.Buffer
	b.WriteString(taskType)
	for i, f := range fields {
		b.WriteByte("{,"[min(i, 1)])
		name, err := json.Marshal(f.name)
		if err != nil {
			return "", err
		}
		value := []byte("null") // of a field in an embedded struct that is not there
		if at, err := v.FieldByIndexErr(f.index); err == nil {
			if value, err = json.Marshal(at.Interface()); err != nil {
				return "", fmt.Errorf("field %s: %w", f.name, err)
			}
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	if b.Len() <= keyBytesMax {
		return b.String(), nil
	}
	return fmt.Sprintf("%s#%x", taskType, sha256.Sum256(b.Bytes())), nil
}
