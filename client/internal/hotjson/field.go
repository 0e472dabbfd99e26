package hotjson

// WithField returns the object with raw added as its first field. json.RawMessage would not do, because Marshal
// removes its spaces and changes its escapes, and the bytes must stay as they are.
func WithField(name string, raw, object []byte) []byte {
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
