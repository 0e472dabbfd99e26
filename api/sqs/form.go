package sqs

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

// readForm reads a form, or a query string, of a Query request.
func readForm(form []byte) (value, *Error) {
	root := value{kind: object}
	count := 0
	for rest := string(form); rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "&")
		if part == "" {
			continue
		}
		rawName, rawText, _ := strings.Cut(part, "=")
		name, err1 := url.QueryUnescape(rawName)
		content, err2 := url.QueryUnescape(rawText)
		if err1 != nil || err2 != nil || !utf8.ValidString(name) || !utf8.ValidString(content) {
			return value{}, malformed("The request's parameters are not a form of percent-encoded UTF-8.")
		}
		steps := strings.Split(name, ".")
		if count += len(steps); count > valuesMax || len(steps) > depthMax {
			return value{}, malformed("The request has too many parameters.")
		}
		if !put(&root, steps, content) {
			return value{}, malformed("The parameter " + shorten(name) + " is there twice, or within another one.")
		}
	}
	return root, root.shape()
}

// put sets the member that steps lead to. ok is false if it, or a part of the way, is a text already.
func put(v *value, steps []string, content string) (ok bool) {
	for _, name := range steps {
		if v.kind != object {
			return false
		}
		next := v.member(name)
		if next == &absent {
			v.items = append(v.items, value{kind: object, name: name})
			next = &v.items[len(v.items)-1]
		}
		v = next
	}
	if v.kind != object || len(v.items) > 0 {
		return false
	}
	v.kind, v.text = text, content
	return true
}

// shape gives an object of a form the shape that JSON has.
func (v *value) shape() *Error {
	if v.kind != object {
		return nil
	}
	for i := range v.items {
		item := &v.items[i]
		as, renamed := formNames[item.name]
		if !renamed || item.kind != object {
			if bad := item.shape(); bad != nil {
				return bad
			}
			continue
		}
		item.name = as.name
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
func (v *value) toList() *Error {
	for i := range v.items {
		item := &v.items[i]
		n, err := strconv.Atoi(item.name)
		if err != nil || n < 1 || n > valuesMax || item.name[0] == '0' || item.name[0] == '+' {
			return malformed("The parameter " + shorten(item.name) + " must be the number of an element, from 1.")
		}
		if bad := item.shape(); bad != nil {
			return bad
		}
	}
	slices.SortFunc(v.items, func(a, b value) int { // numbers without zeros before them
		return cmp.Or(len(a.name)-len(b.name), strings.Compare(a.name, b.name))
	})
	v.kind = list
	return nil
}

// toMap turns a list of keys and values into the object that it stands for.
func (v *value) toMap(key, val string) *Error {
	for i := range v.items {
		item := &v.items[i]
		k := item.member(key)
		if k.kind != text {
			return malformed("An element of a map has no " + key + ".")
		}
		name := k.text
		*item = *item.member(val)
		item.name = name
	}
	v.kind = object
	return nil
}
