package client

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
)

// marshal is json.Marshal without the escaping of <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withRaw encodes v, a struct, with raw added as its first field.
func withRaw(name string, raw []byte, v any) ([]byte, error) {
	object, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return hotjson.WithField(name, raw, object), nil
}

// completion returns the body of a complete. A body with a ResultPayload has no result.
func completion(s wire.Settle, result []byte, then []Task) ([]byte, error) {
	switch {
	case len(s.ResultPayload) > 0:
	case hotjson.RoundTrips(result):
		s.Result = result
	default:
		s.ResultPayload = result
	}
	body, err := hotjson.Settle(&s)
	if err != nil {
		return nil, err
	}
	if len(then) > 0 {
		submit, err := encodeAll(then)
		if err != nil {
			return nil, err
		}
		body = hotjson.WithField("submit", submit, body)
	}
	return body, nil
}

// encodeAll encodes tasks as an array, each with a random idempotency key if it has none.
func encodeAll(tasks []Task) ([]byte, error) {
	all := []byte{'['}
	for i := range tasks {
		item, err := tasks[i].encode(rand.Text())
		if err != nil {
			return nil, fmt.Errorf("task %d of %d: %w", i+1, len(tasks), err)
		}
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, item...)
	}
	return append(all, ']'), nil
}

// failure returns the body of a fail.
func failure(s wire.Settle, cause error) ([]byte, error) {
	cause = safeError(cause)
	s.Error = "no reason given"
	if cause != nil && cause.Error() != "" {
		s.Error = failureText(cause.Error())
	}
	var permanent *permanentError
	var later *retryError
	if errors.As(cause, &permanent) {
		s.Permanent = true
	} else if errors.As(cause, &later) {
		ms := milliseconds(min(max(later.after, 0), delayMax))
		s.RetryInMS = &ms
	}
	return hotjson.Settle(&s)
}

// failureText cuts a failure's text to what the server takes, at a whole character. Zero bytes and invalid UTF-8,
// which the server refuses, are replaced so that the failure itself is not lost.
func failureText(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= errorBytesMax {
		return text
	}
	end := errorBytesMax
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// releasing returns the body of a release.
func releasing(s wire.Settle, delay time.Duration) ([]byte, error) {
	if delay < 0 {
		return nil, fmt.Errorf("delay is %v, it must not be negative", delay)
	}
	s.DelayMS = milliseconds(min(delay, delayMax))
	return hotjson.Settle(&s)
}

// extension returns the body of an extend, with progress unless it is nil.
func extension(s wire.Settle, progress json.RawMessage) ([]byte, error) {
	body, err := hotjson.Settle(&s)
	if err != nil || progress == nil {
		return body, err
	}
	return hotjson.WithField("progress", cutProgress(progress), body), nil
}
