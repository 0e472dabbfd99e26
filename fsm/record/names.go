package record

// internMax bounds how many different names are kept.
const internMax = 10_000

// Names interns strings, because type names and worker ids repeat a lot. Names beyond the
// bound are not shared; nil Names share none.
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
