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

// keyBytesMax is the longest idempotency key that the server accepts.
const keyBytesMax = 256

// field is a field that is part of the key.
type field struct {
	name  string // in JSON
	index []int  // for reflect.Value.FieldByIndex
}

// uniqueFields returns the fields of P that are tagged as unique, in order. P may be a struct or a pointer to one;
// fields of embedded structs are included.
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

// errNilParams is returned for a nil pointer, from which no key can be made.
var errNilParams = errors.New("the params are nil")

// uniqueKey returns the idempotency key of params: the type and the JSON of the fields, so that the key is readable,
// or a hash of these if that is too long. Types contain neither a brace nor a hash sign, so that keys of different
// kinds never collide.
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
		value := []byte("null") // a field in an embedded struct that is nil
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
