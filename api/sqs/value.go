package sqs

// kind says what a value is.
type kind uint8

const (
	none kind = iota // absent, or null
	text
	number
	boolean
	list
	object
)

// Bounds of a request's values. The largest useful request, a batch of ten messages with ten attributes each, has a
// fifth of them.
const (
	valuesMax = 4_000
	depthMax  = 8
)

// value is a part of a request. Requests of both forms are read into the shape that JSON has. Texts are parts of a copy
// of the request; what is kept longer than the request must be cloned.
type value struct {
	kind  kind
	name  string  // of a member of an object
	text  string  // of a text, number or boolean
	items []value // the members of an object, or the elements of a list
}

// absent is returned for members that are not there. It is never changed.
var absent value

// member returns an object's last member of one of the names.
func (v *value) member(names ...string) *value {
	if v.kind == object {
		for _, name := range names {
			for i := len(v.items) - 1; i >= 0; i-- {
				if v.items[i].name == name {
					return &v.items[i]
				}
			}
		}
	}
	return &absent
}

// scalar returns the text of a value. Clients in JavaScript send numbers and booleans where the model has texts, and
// texts where it has numbers. ok is false for a list or an object.
func (v *value) scalar() (s string, ok bool) { return v.text, v.kind < list }
