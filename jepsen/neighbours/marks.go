package neighbours

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/claimq/claimq/jepsen/history"
)

// marks are texts that must not be in an answer, plain or in base64.
type marks []string

// newMarks returns the texts in all forms that are looked for.
func newMarks(texts []string) (m marks) {
	for _, text := range texts {
		m = append(m, text)
		for before := range 3 { // in base64 wherever it stands, but for what its neighbours share
			coded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("-", before) + text))
			m = append(m, coded[(before*4+2)/3:len(coded)-1])
		}
	}
	return m
}

// find returns the first mark in an answer with some of the text around it, "" if no mark occurs.
func (m marks) find(raw []byte) string {
	for _, mark := range m {
		if i := bytes.Index(raw, []byte(mark)); i >= 0 {
			return fmt.Sprintf("%q in %q", mark, raw[max(i-80, 0):min(i+80, len(raw))])
		}
	}
	return ""
}

// cursors finds the cursors of an answer, plain those that can be read: they name a task, which
// may be another's.
var (
	cursors = regexp.MustCompile(`"next_cursor":"([^"]+)"`)
	plain   = regexp.MustCompile(`^([ad][0-9a-z]+|e[0-9a-z]+\.[0-9a-z]+)$`)
)

// findCursor returns what is wrong with the answer's cursor, "" if nothing is.
func (m marks) findCursor(raw []byte) string {
	found := cursors.FindSubmatch(raw)
	if found == nil {
		return ""
	}
	if plain.Match(found[1]) {
		return fmt.Sprintf("the cursor %s, which can be read", found[1])
	}
	text, err := base64.RawURLEncoding.DecodeString(string(found[1]))
	if err != nil {
		return fmt.Sprintf("the cursor %s, which is not sealed: %v", found[1], err)
	}
	return m.find(text)
}

// eyes make a tenant's requests, and search every byte of the answers for others' marks.
type eyes struct {
	*Neighbours
	by     http.RoundTripper
	tenant string
	marks  marks
}

// RoundTrip makes one request. The answer is read to its end, or until the request's context
// ends: then all that came is looked at.
func (e *eyes) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.by.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	_ = resp.Body.Close()
	e.look(r, resp, raw)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	return resp, nil
}

// look looks at an answer.
func (e *eyes) look(r *http.Request, resp *http.Response, raw []byte) {
	e.looked.Add(1)
	e.bytes.Add(int64(len(raw)))
	found := e.marks.find(fmt.Append(nil, resp.Header))
	if found == "" {
		found = e.marks.find(raw)
	}
	if found == "" {
		found = e.marks.findCursor(raw)
	}
	if found != "" {
		e.note(history.Leaked, "%s was shown %s by %s %s, status %d", e.tenant, found, r.Method, r.URL, resp.StatusCode)
	}
}
