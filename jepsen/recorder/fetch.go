package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

const (
	// answerBytesMax bounds the part of an answer that is read.
	answerBytesMax = 32 << 20
	askTimeout     = 5 * time.Second
	retryPause     = 50 * time.Millisecond
)

// errNotDone is returned for an answer that is not a success.
var errNotDone = errors.New("not done")

// fetch makes one request and returns the answer and its index, 0 if it has none. The
// transport only repeats requests that were never written.
func fetch(ctx context.Context, by *http.Client, key, method, target string, minIndex uint64, body any) (status int, index uint64, raw []byte, err error) {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, 0, nil, err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return 0, 0, nil, err
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	if minIndex > 0 {
		req.Header.Set("X-Claimq-Min-Index", strconv.FormatUint(minIndex, 10))
	}
	resp, err := by.Do(req)
	if err != nil {
		return 0, 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	index, _ = strconv.ParseUint(resp.Header.Get("X-Claimq-Index"), 10, 64) // absent: 0
	raw, err = io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	return resp.StatusCode, index, raw, err
}

// ask makes one request that is not part of the history, and decodes the answer, which must
// be a success, into answer unless that is nil. Deleting something that does not exist is a
// success.
func (r *Recorder) ask(ctx context.Context, method, target string, body, answer any) (index uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, index, raw, err := fetch(ctx, r.http, r.Key, method, target, 0, body)
	switch {
	case err != nil:
		return 0, err
	case method == http.MethodDelete && status == http.StatusNotFound:
		return 0, nil
	case status/100 != 2:
		return 0, fmt.Errorf("%w: %s %s: status %d", errNotDone, method, target, status)
	case answer == nil:
		return index, nil
	}
	return index, json.Unmarshal(raw, answer)
}

// askAny asks one node after the other until one answers with a success or ctx ends.
func (r *Recorder) askAny(ctx context.Context, nodes []string, method, path string, body, answer any) (index uint64, err error) {
	next := 0
	err = pause.Until(ctx, retryPause, func() (err error) {
		index, err = r.ask(ctx, method, nodes[next%len(nodes)]+path, body, answer)
		next++
		return err
	})
	return index, err
}

// pageLimit is the maximum number of tasks in a page.
const pageLimit = "1000"

// pages reads all tasks, oldest first, page by page. ask requests the page at path and
// returns the beginning of the next one, "" after the last.
func pages(query url.Values, ask func(path string) (next string, err error)) error {
	query.Set("limit", pageLimit)
	query.Set("order", "asc")
	for {
		next, err := ask("/api/tasks?" + query.Encode())
		if err != nil || next == "" {
			return err
		}
		query.Set("cursor", next)
	}
}
