package hotjson

import (
	"bytes"
	"encoding/json"
)

// Results returns the raw elements of the array "results", which must have n of them, of an object whose "success" is
// true. ok is false if b is not such an object, or not whole. In an object that begins with both, as the server's do,
// elements are only checked for matching brackets and quotes; decoding them finds other errors.
func Results(b []byte, n int) (results [][]byte, ok bool) {
	if results, ok = resultsFirst(b, n); ok {
		return results, true
	}
	var object struct {
		Success bool              `json:"success"`
		Results []json.RawMessage `json:"results"`
	}
	if json.Unmarshal(b, &object) != nil || !object.Success || len(object.Results) != n {
		return nil, false
	}
	results = make([][]byte, n)
	for i, each := range object.Results {
		results[i] = each
	}
	return results, true
}

// resultsFirst is Results for an object that begins with success and results.
func resultsFirst(b []byte, n int) (results [][]byte, ok bool) {
	const begin = `{"success":true,"results":[`
	if !bytes.HasPrefix(b, []byte(begin)) {
		return nil, false
	}
	results = make([][]byte, 0, n)
	at := len(begin)
	for at < len(b) && b[at] != ']' {
		end := skip(b, at)
		if end < 0 || len(results) == n {
			return nil, false
		}
		results = append(results, b[at:end:end])
		at = end
		if at < len(b) && b[at] == ',' {
			at++
		}
	}
	if len(results) != n || at >= len(b) {
		return nil, false
	}
	return results, isRest(b[at+1:])
}

// isRest reports whether b can follow the results: further fields, and the end of the object.
func isRest(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	object := append([]byte{'['}, b[:len(b)-1]...)
	return b[len(b)-1] == '}' && skip(append(object, ']'), 0) == len(b)+1
}

// skip returns the end of the object, array or string that begins at b[at], or -1 if it does not end or something
// else begins there.
func skip(b []byte, at int) int {
	depth := 0
	for i := at; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = endOfString(b, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth <= 0 {
			if depth < 0 || b[i] != '"' && b[i] != '}' && b[i] != ']' {
				return -1
			}
			return i + 1
		}
	}
	return -1
}

// endOfString returns the index of the quote that ends the string at b[at], or -1.
func endOfString(b []byte, at int) int {
	for i := at + 1; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
		i++
	}
}
