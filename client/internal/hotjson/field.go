package hotjson

// WithField returns the object with raw as one more field in front.
// json.RawMessage would not do: Marshal strips its spaces and changes its
// escapes, and the bytes are to be kept as given.
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
