// Package shape reads the parameters of a request of SQS, of AWS JSON or of Query, into one shape.
package shape

// Kind says what a value is.
type Kind uint8

// The kinds.
const (
	None Kind = iota // absent, or null
	Text
	Number
	Boolean
	List
	Object
)

// Bounds of a request's values. The largest useful request, a batch of ten messages with ten attributes each, has a
// fifth of them.
const (
	ValuesMax = 4_000
	depthMax  = 8
)

// Value is a part of a request. Requests of both forms are read into the shape that JSON has. Its strings share the
// memory of a copy of the request, so one that is kept longer than the request must be cloned.
type Value struct {
	Kind  Kind
	Name  string  // of a member of an object
	Text  string  // of a string, number or boolean
	Items []Value // the members of an object, or the elements of a list
}

// absent is returned for members that are not there. It is never changed.
var absent Value

// Member returns an object's last member of one of the names.
func (v *Value) Member(names ...string) *Value {
	if v.Kind == Object {
		for _, name := range names {
			for i := len(v.Items) - 1; i >= 0; i-- {
				if v.Items[i].Name == name {
					return &v.Items[i]
				}
			}
		}
	}
	return &absent
}

// Scalar returns the text of a value. Clients in JavaScript send numbers and booleans where the model has strings, and
// strings where it has numbers. ok is false for a list or an object.
func (v *Value) Scalar() (s string, ok bool) { return v.Text, v.Kind < List }

// Shorten limits how much an error repeats of what a client sent.
func Shorten(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xc0 == 0x80 {
		cut--
	}
	return s[:cut] + "..."
}

// malformed is an error about the form of a request. Its text is sent to the client.
type malformed string

func (m malformed) Error() string { return string(m) }
