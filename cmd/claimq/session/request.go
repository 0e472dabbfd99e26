package session

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// Request is a call that a command makes.
type Request struct {
	client.Request
	Unknown string // advice for the user if its outcome is unknown
}

// Get returns a call that changes nothing.
func Get(path string) Request {
	return Request{Request: client.Request{Method: http.MethodGet, Path: path}}
}

// Post returns a call that may be repeated; unknown is the advice if its outcome is unknown. body is JSON as []byte,
// or a value to encode.
func Post(path string, body any, unknown string) (Request, error) {
	return change(http.MethodPost, path, body, unknown)
}

// Put is Post with PUT.
func Put(path string, body any, unknown string) (Request, error) {
	return change(http.MethodPut, path, body, unknown)
}

// Patch is Post with PATCH.
func Patch(path string, body any, unknown string) (Request, error) {
	return change(http.MethodPatch, path, body, unknown)
}

// Delete is Post with DELETE, which has no body.
func Delete(path, unknown string) (Request, error) {
	return change(http.MethodDelete, path, []byte(nil), unknown)
}

// PostTask is Post about the task with id arg; verb is the action.
func PostTask(arg, verb string, body any, unknown string) (Request, error) {
	id, err := ParseID(arg)
	if err != nil {
		return Request{}, err
	}
	return Post(TaskPath(id, verb), body, unknown)
}

func change(method, path string, body any, unknown string) (Request, error) {
	text, ok := body.([]byte)
	if !ok {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return Request{}, fmt.Errorf("encode request: %w", err)
		}
	}
	return Request{client.Request{Method: method, Path: path, Body: text, Repeatable: true}, unknown}, nil
}

// Once returns the call without repeats, because these could do harm.
func (r Request) Once() Request {
	r.Repeatable = false
	return r
}

// ParseID parses a task's id.
func ParseID(arg string) (uint64, error) {
	id, err := strconv.ParseUint(arg, 10, 53)
	if err != nil || id == 0 {
		return 0, term.UsageErrorf("%q is not a task id: it must be a positive number", arg)
	}
	return id, nil
}

// TaskPath returns the path of a call about a task; verb is the action, or "".
func TaskPath(id uint64, verb string) string {
	path := "/api/tasks/" + strconv.FormatUint(id, 10)
	if verb != "" {
		path += "/" + verb
	}
	return path
}
