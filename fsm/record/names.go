package record

// internMax bounds how many different names Names keep.
const internMax = 10_000

// Names gives equal names one string, as type names and worker ids come
// again and again. Names past the bound get a string of their own, and so do all
// with nil Names.
type Names struct{ names map[string]string }

func (in *Names) intern(name []byte) string {
	if in == nil {
		return string(name)
	}
	if s, ok := in.names[string(name)]; ok {
		return s
	}
	s := string(name)
	if in.names == nil {
		in.names = make(map[string]string)
	}
	if len(in.names) < internMax {
		in.names[s] = s
	}
	return s
}
