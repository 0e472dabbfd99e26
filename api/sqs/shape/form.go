package shape

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Query request is a form whose names lead through lists and objects, with numbers for the elements of lists:
// MessageAttribute.1.Value.StringValue. Lists have another name than in JSON, and a map is a list of names and values.

// formNames has the names that differ from JSON's.
var formNames = map[string]struct {
	name     string
	key, val string // the members of a map's elements; "" = it is a list
}{
	"AttributeName":                            {name: "AttributeNames"},
	"MessageAttributeName":                     {name: "MessageAttributeNames"},
	"MessageSystemAttributeName":               {name: "MessageSystemAttributeNames"},
	"TagKey":                                   {name: "TagKeys"},
	"SendMessageBatchRequestEntry":             {name: "Entries"},
	"DeleteMessageBatchRequestEntry":           {name: "Entries"},
	"ChangeMessageVisibilityBatchRequestEntry": {name: "Entries"},
	"Attribute":                                {"Attributes", "Name", "Value"},
	"MessageAttribute":                         {"MessageAttributes", "Name", "Value"},
	"MessageSystemAttribute":                   {"MessageSystemAttributes", "Name", "Value"},
	"Tag":                                      {"Tags", "Key", "Value"},
}

// ReadForm reads a form, or a query string, of a Query request.
func ReadForm(form []byte) (Value, error) {
	root := Value{Kind: Object}
	count := 0
	for rest := string(form); rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "&")
		if part == "" {
			continue
		}
		rawName, rawText, _ := strings.Cut(part, "=")
		name, err1 := unescape(rawName)
		content, err2 := unescape(rawText)
		if err1 != nil || err2 != nil || !utf8.ValidString(name) || !utf8.ValidString(content) {
			return Value{}, malformed("The request's parameters are not a form of percent-encoded UTF-8.")
		}
		steps := 1 + strings.Count(name, ".")
		if count += steps; count > ValuesMax || steps > depthMax {
			return Value{}, malformed("The request has too many parameters.")
		}
		if !put(&root, name, content) {
			return Value{}, malformed("The parameter " + Shorten(name) + " is there twice, or within another one.")
		}
	}
	return root, root.shape()
}

// unescape is url.QueryUnescape, but faster for strings without escapes.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, nil
	}
	return url.QueryUnescape(s)
}

// itemsRoom has room for the members of most objects of a form.
const itemsRoom = 4

// put sets the member at the path name, whose steps are separated by points. ok is false if it, or a step on the way to
// it, is a string already.
func put(v *Value, name, content string) (ok bool) {
	for more := true; more; {
		if v.Kind != Object {
			return false
		}
		var step string
		step, name, more = strings.Cut(name, ".")
		next := v.Member(step)
		if next == &absent {
			if v.Items == nil {
				v.Items = make([]Value, 0, itemsRoom)
			}
			v.Items = append(v.Items, Value{Kind: Object, Name: step})
			next = &v.Items[len(v.Items)-1]
		}
		v = next
	}
	if v.Kind != Object || len(v.Items) > 0 {
		return false
	}
	v.Kind, v.Text = Text, content
	return true
}

// shape gives an object of a form the shape that JSON has.
func (v *Value) shape() error {
	if v.Kind != Object {
		return nil
	}
	for i := range v.Items {
		item := &v.Items[i]
		as, renamed := formNames[item.Name]
		if !renamed || item.Kind != Object {
			if bad := item.shape(); bad != nil {
				return bad
			}
			continue
		}
		item.Name = as.name
		if bad := item.toList(); bad != nil {
			return bad
		}
		if as.key != "" {
			if bad := item.toMap(as.key, as.val); bad != nil {
				return bad
			}
		}
	}
	return nil
}

// toList turns an object with numbers for names into the list that it stands for.
func (v *Value) toList() error {
	for i := range v.Items {
		item := &v.Items[i]
		n, err := strconv.Atoi(item.Name)
		if err != nil || n < 1 || n > ValuesMax || item.Name[0] == '0' || item.Name[0] == '+' {
			return malformed("The parameter " + Shorten(item.Name) + " must be the number of an element, from 1.")
		}
		if bad := item.shape(); bad != nil {
			return bad
		}
	}
	slices.SortFunc(v.Items, func(a, b Value) int { // numbers without zeros before them
		return cmp.Or(len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
	})
	v.Kind = List
	return nil
}

// toMap turns a list of keys and values into the object that it stands for.
func (v *Value) toMap(key, val string) error {
	for i := range v.Items {
		item := &v.Items[i]
		k := item.Member(key)
		if k.Kind != Text {
			return malformed("An element of a map has no " + key + ".")
		}
		name := k.Text
		*item = *item.Member(val)
		item.Name = name
	}
	v.Kind = Object
	return nil
}
