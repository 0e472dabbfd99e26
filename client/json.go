package client

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// marshal is json.Marshal that leaves <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withRaw encodes v, a struct, with raw as one more field in front.
func withRaw(name string, raw []byte, v any) ([]byte, error) {
	object, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return withField(name, raw, object), nil
}

// withField returns the object with raw as one more field in front.
// json.RawMessage would not do: Marshal strips its spaces and changes its
// escapes, and the bytes are to be kept as given.
func withField(name string, raw, object []byte) []byte {
	b := make([]byte, 0, len(name)+len(raw)+len(object)+4)
	b = append(b, '{', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	b = append(b, raw...)
	if len(object) > len("{}") {
		b = append(b, ',')
	}
	return append(b, object[1:]...)
}
