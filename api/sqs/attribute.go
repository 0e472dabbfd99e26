package sqs

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/sqs/shape"
)

// Attribute is an attribute of a message, typed by its sender.
type Attribute struct {
	Name  string `json:"n"`
	Type  string `json:"t"` // String, Number or Binary, perhaps with a dot and the sender's label
	Value []byte `json:"v"`
}

// Binary reports whether the value is bytes instead of a string.
func (a *Attribute) Binary() bool { return base(a.Type) == "Binary" }

// base returns a type without its label.
func base(t string) string {
	b, _, _ := strings.Cut(t, ".")
	return b
}

// Bounds of attributes.
const (
	attributesMax    = 10
	attributeNameMax = 256
	numberMax        = 256 // characters of a number
)

// traceHeader is the one system attribute that a message may be sent with.
const traceHeader = "AWSTraceHeader"

// attributes reads the attributes of a message, sorted by name.
func (d *decoder) attributes(v *shape.Value, member string, system bool) []Attribute {
	m := v.Member(member)
	switch {
	case m.Kind == shape.None, d.query && m.Kind == shape.Text && m.Text == "":
		return nil
	case m.Kind != shape.Object:
		d.refuse(malformed(member + " must be a map."))
		return nil
	case len(m.Items) > attributesMax:
		d.refuse(invalidParameter("Number of message attributes [" + strconv.Itoa(len(m.Items)) + "] exceeds the allowed maximum [" + strconv.Itoa(attributesMax) + "]."))
		return nil
	}
	all := make([]Attribute, 0, len(m.Items))
	for i := range m.Items {
		all = append(all, d.attribute(m.Items[i].Name, &m.Items[i], system))
	}
	sortAttributes(all)
	for i := 1; i < len(all); i++ {
		d.once(all[i-1].Name, all[i].Name)
	}
	return all
}

func sortAttributes(all []Attribute) {
	slices.SortFunc(all, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
}

func (d *decoder) attribute(name string, v *shape.Value, system bool) Attribute {
	a := Attribute{Name: name, Type: d.text(v, "DataType")}
	switch {
	case system && name != traceHeader:
		d.refuse(invalidParameter("Message system attribute name '" + shape.Shorten(name) + "' is invalid."))
	case !system && !validAttributeName(name):
		d.refuse(invalidParameter("The message attribute name '" + shape.Shorten(name) + "' is invalid. Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters."))
	case a.Type == "":
		d.refuse(invalidParameter("The message attribute '" + shape.Shorten(name) + "' must contain a non-empty message attribute type."))
	case len(a.Type) > attributeNameMax || !slices.Contains([]string{"String", "Number", "Binary"}, base(a.Type)) || system && a.Type != "String" || !validXML(a.Type):
		d.refuse(invalidParameter("The message attribute '" + shape.Shorten(name) + "' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."))
	}
	if v.Member("StringListValues").Kind != shape.None || v.Member("BinaryListValues").Kind != shape.None {
		d.refuse(Unsupported("Message attribute lists in the message are not supported."))
	}
	if a.Binary() {
		s := d.text(v, "BinaryValue")
		var err error
		if a.Value, err = base64.StdEncoding.DecodeString(s); err != nil {
			d.refuse(malformed("The BinaryValue of " + shape.Shorten(name) + " is not base64."))
		}
	} else {
		a.Value = []byte(d.text(v, "StringValue"))
	}
	switch text := string(a.Value); {
	case text == "":
		d.refuse(invalidParameter("The message attribute '" + shape.Shorten(name) + "' must contain a non-empty message attribute value for message attribute type '" + shape.Shorten(a.Type) + "'."))
	case !a.Binary() && !validXML(text):
		d.refuse(badContents())
	case base(a.Type) == "Number" && !validNumber(text):
		d.refuse(invalidParameter("Can't cast the value of message (user) attribute '" + shape.Shorten(name) + "' to a number."))
	}
	return a
}

func validNumber(s string) bool {
	if len(s) > numberMax || strings.Trim(s, "+-.0123456789eE") != "" {
		return false
	}
	_, _, err := big.ParseFloat(s, 10, 16, big.ToNearestEven)
	return err == nil
}

func validAttributeName(name string) bool {
	lower := strings.ToLower(name)
	if name == "" || len(name) > attributeNameMax || name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, "..") ||
		strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !letterOrDigit(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// md5OfBody returns the MD5 of a body in hexadecimal. SDKs compare it with that of the body that they sent or received.
func md5OfBody(body []byte) string {
	sum := md5.Sum(body)
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is md5OfBody for attributes, which must be sorted by the bytes of their names. The sum is over the
// name, the type and the value of each, with their lengths, and a byte that says whether the value is a string or
// bytes.
func md5OfAttributes(attributes []Attribute) string {
	var b []byte
	part := func(s string) { b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...) }
	for i := range attributes {
		a := &attributes[i]
		part(a.Name)
		part(a.Type)
		kind := byte(1)
		if a.Binary() {
			kind = 2
		}
		b = append(b, kind)
		part(string(a.Value))
	}
	return md5OfBody(b)
}

// A task stores the attributes of its message, each an object by its name. Native workers read them, too:
// {"colour":{"type":"String","value":"red"},"raw":{"type":"Binary","value":"AAE="}}. What the endpoint adds has names that
// messages cannot have.
const (
	keptPrefix = "AWS."
	keptSender = keptPrefix + "SenderId"
	keptDedup  = keptPrefix + "MessageDeduplicationId"
)

// bare reports whether a message has nothing but its body.
func (e *Entry) bare() bool { return len(e.Attributes) == 0 && len(e.System) == 0 && e.Dedup == "" }

// kept returns the attributes of the task for a message, as JSON; nil: none.
func (e *Entry) kept(sender string) []byte {
	if e.bare() && sender == "" {
		return nil
	}
	w := writer{b: append(make([]byte, 0, 64*(2+len(e.Attributes)+len(e.System))), '{')}
	add := func(name string, a *Attribute) {
		if len(a.Value) == 0 {
			return
		}
		w.object(name, func() {
			w.text("type", a.Type)
			if a.Binary() {
				w.text("value", base64.StdEncoding.EncodeToString(a.Value))
			} else {
				write(&w, "value", a.Value)
			}
		})
	}
	for i := range e.Attributes {
		add(e.Attributes[i].Name, &e.Attributes[i])
	}
	add(keptSender, &Attribute{Type: "String", Value: []byte(sender)})
	add(keptDedup, &Attribute{Type: "String", Value: []byte(e.Dedup)})
	for i := range e.System {
		add(keptPrefix+e.System[i].Name, &e.System[i])
	}
	if len(w.b) == 1 {
		return nil
	}
	return append(w.b, '}')
}

// readKept is the inverse of kept. It returns the attributes of the message, and separately what kept has added. A
// native client may have written other values: strings and numbers become attributes, too, and the rest is left out.
func readKept(raw []byte) (attributes []Attribute, system []Pair) {
	if raw == nil {
		return nil, nil
	}
	_ = shape.ReadJSON(raw, func(v *shape.Value) { // invalid JSON has no attributes
		for i := range v.Items {
			name := v.Items[i].Name
			a, ok := attributeOf(name, &v.Items[i])
			switch short, own := strings.CutPrefix(name, keptPrefix); {
			case !ok:
			case own:
				system = append(system, Pair{short, string(a.Value)})
			case validAttributeName(name):
				attributes = append(attributes, a)
			}
		}
	})
	sortAttributes(attributes)
	return attributes, system
}

func attributeOf(name string, v *shape.Value) (a Attribute, ok bool) {
	a = Attribute{Name: name, Type: "String", Value: []byte(v.Text)}
	switch v.Kind {
	case shape.Number:
		a.Type = "Number"
	case shape.Object:
		a.Type, a.Value = v.Member("type").Text, []byte(v.Member("value").Text)
		if a.Binary() {
			var err error
			if a.Value, err = base64.StdEncoding.DecodeString(string(a.Value)); err != nil {
				return a, false
			}
		}
	case shape.Text:
	default:
		return a, false
	}
	return a, a.Type != "" && len(a.Value) > 0 && (a.Binary() || validXML(a.Value))
}

// named returns the attributes that names selects: by a whole name, by a prefix followed by .*, or all of them by All.
func named(attributes []Attribute, names []string) (some []Attribute) {
	for i := range attributes {
		if slices.ContainsFunc(names, func(name string) bool {
			prefix, isPrefix := strings.CutSuffix(name, ".*")
			return name == "All" || name == attributes[i].Name || isPrefix && strings.HasPrefix(attributes[i].Name, prefix)
		}) {
			some = append(some, attributes[i])
		}
	}
	return some
}
