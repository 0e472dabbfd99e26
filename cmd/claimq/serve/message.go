package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/claimq/claimq/client"
)

const (
	// protocol is the version that is spoken.
	protocol = 1
	// lineBytesMax bounds a line in both directions: a complete of the API is as long at most. A
	// cluster that takes less has programs say less.
	lineBytesMax = 8 << 20
	// dependenciesMax bounds the results of dependencies that are handed over.
	dependenciesMax = 4 << 20
	// What a cluster takes at most, of results, errors and follow-ups: it may take less.
	valueBytesMax = 1 << 20
	errorBytesMax = 16 << 10
	submitMax     = 1_000
	// progressBytesMax is what every cluster takes of progress.
	progressBytesMax = 4 << 10
	// Bounds of a hello.
	typesMax       = 1_000
	concurrencyMax = 1_000
	clientBytesMax = 128
	// timeoutMaxMS is what a program may ask for, a year.
	timeoutMaxMS = 365 * 24 * 3_600_000
	// shownMax is how much of a line an error shows.
	shownMax = 200
)

// said is a line of a program; which fields are there goes by its kind.
type said struct {
	Kind string `json:"kind"`

	Protocol    int          `json:"protocol"`
	Types       []servedType `json:"types"`
	Concurrency int          `json:"concurrency"`
	Client      string       `json:"client"`

	ID            uint64          `json:"id"`
	Token         int64           `json:"token"`
	Result        json.RawMessage `json:"result"`
	ResultPayload []byte          `json:"result_payload"`
	Submit        json.RawMessage `json:"submit"`
	Error         string          `json:"error"`
	Permanent     bool            `json:"permanent"`
	RetryInMS     *int64          `json:"retry_in_ms"`
	MS            int64           `json:"ms"`
	Progress      json.RawMessage `json:"progress"`
}

// servedType is a task type of a program.
type servedType struct {
	Type        string `json:"type"`
	Concurrency int    `json:"concurrency"` // 0: as many as of all
	TimeoutMS   int64  `json:"timeout_ms"`  // 0: --timeout
}

// The kinds of messages.
const (
	kindHello    = "hello"
	kindTask     = "task"
	kindDone     = "done"
	kindFail     = "fail"
	kindSnooze   = "snooze"
	kindProgress = "progress"
	kindCancel   = "cancel"
	kindStop     = "stop"
)

type helloMessage struct {
	Kind     string `json:"kind"`
	Protocol int    `json:"protocol"`
	WorkerID string `json:"worker_id"`
	Limits   limits `json:"limits"`
	GraceMS  int64  `json:"grace_ms"`
}

type limits struct {
	LineBytes     int `json:"line_bytes"`
	ValueBytes    int `json:"value_bytes"`
	ErrorBytes    int `json:"error_bytes"`
	ProgressBytes int `json:"progress_bytes"`
	Submit        int `json:"submit"`
}

// limitsOf are what a program may say where the cluster takes what it says; nil: it does not say.
func limitsOf(of *client.Limits) limits {
	l := limits{lineBytesMax, valueBytesMax, errorBytesMax, progressBytesMax, submitMax}
	if of != nil {
		l.LineBytes, l.ValueBytes = min(l.LineBytes, of.BodyBytes), min(l.ValueBytes, of.ValueBytes)
		l.ErrorBytes, l.Submit = min(l.ErrorBytes, of.ErrorBytes), min(l.Submit, of.Items)
	}
	return l
}

type taskMessage struct {
	Kind                string            `json:"kind"`
	ID                  uint64            `json:"id"`
	Token               int64             `json:"token"`
	Type                string            `json:"type"`
	Attempt             int               `json:"attempt"`
	Params              json.RawMessage   `json:"params,omitempty"`
	Payload             []byte            `json:"payload,omitempty"`
	Labels              map[string]string `json:"labels,omitempty"`
	Traceparent         string            `json:"traceparent,omitempty"`
	TimeoutMS           int64             `json:"timeout_ms"`
	ParentID            json.RawMessage   `json:"parent_id,omitempty"`
	Step                string            `json:"step,omitempty"`
	Dependencies        map[string]value  `json:"dependencies,omitempty"`
	DependenciesLeftOut bool              `json:"dependencies_left_out,omitempty"`
}

// value is a result as it is handed over.
type value struct {
	Result        json.RawMessage `json:"result,omitempty"`
	ResultPayload []byte          `json:"result_payload,omitempty"`
}

type cancelMessage struct {
	Kind  string `json:"kind"`
	ID    uint64 `json:"id"`
	Token int64  `json:"token"`
	Why   string `json:"why"`
}

type stopMessage struct {
	Kind string `json:"kind"`
}

// lineOf is a message as a line.
func lineOf(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(message)
	return b.Bytes(), err
}

// read reads a line of a program.
func read(line []byte) (*said, error) {
	var s said
	if !utf8.Valid(line) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return nil, fmt.Errorf("it is no message: %w", err)
	}
	switch s.Kind {
	case kindHello:
		return &s, s.checkHello()
	case kindDone:
		if len(s.Result) > 0 && len(s.ResultPayload) > 0 {
			return nil, errors.New("it has both result and result_payload")
		}
		if string(s.Submit) == "null" {
			s.Submit = nil
		}
		if len(s.Submit) > 0 && s.Submit[0] != '[' {
			return nil, errors.New("submit must be an array")
		}
	case kindFail:
		if s.Permanent && s.RetryInMS != nil {
			return nil, errors.New("it has both permanent and retry_in_ms")
		}
		if s.RetryInMS != nil && (*s.RetryInMS < 0 || *s.RetryInMS > timeoutMaxMS) {
			return nil, fmt.Errorf("retry_in_ms is %d: it must be 0 to %d", *s.RetryInMS, int64(timeoutMaxMS))
		}
	case kindSnooze:
		if s.MS < 0 || s.MS > timeoutMaxMS {
			return nil, fmt.Errorf("ms is %d: it must be 0 to %d", s.MS, int64(timeoutMaxMS))
		}
	case kindProgress:
		if len(s.Progress) == 0 {
			return nil, errors.New("progress is missing")
		}
	case "":
		return nil, errors.New("kind is missing")
	default:
		return nil, fmt.Errorf("its kind %q is not known", s.Kind)
	}
	if s.ID == 0 || s.Token == 0 {
		return nil, errors.New("id or token is missing")
	}
	return &s, nil
}

var typePattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

func (s *said) checkHello() error {
	switch {
	case s.Protocol != protocol:
		return fmt.Errorf("protocol is %d: this claimq speaks %d", s.Protocol, protocol)
	case s.Concurrency < 1 || s.Concurrency > concurrencyMax:
		return fmt.Errorf("concurrency is %d: it must be 1 to %d", s.Concurrency, concurrencyMax)
	case len(s.Types) == 0 || len(s.Types) > typesMax:
		return fmt.Errorf("types are %d: they must be 1 to %d", len(s.Types), typesMax)
	case len(s.Client) > clientBytesMax:
		return fmt.Errorf("client has more than %d bytes", clientBytesMax)
	}
	there := map[string]bool{}
	for i, t := range s.Types {
		switch {
		case !typePattern.MatchString(t.Type) || t.Type == "." || t.Type == "..":
			return fmt.Errorf("types[%d].type is %q: it must be 1 to 128 of A-Z a-z 0-9 _ . : -, and neither . nor .. alone", i, t.Type)
		case there[t.Type]:
			return fmt.Errorf("types[%d].type is %q, as another is", i, t.Type)
		case t.Concurrency < 0 || t.Concurrency > concurrencyMax:
			return fmt.Errorf("types[%d].concurrency is %d: it must be 1 to %d", i, t.Concurrency, concurrencyMax)
		case t.TimeoutMS < 0 || t.TimeoutMS > timeoutMaxMS:
			return fmt.Errorf("types[%d].timeout_ms is %d: it must be 1 to %d", i, t.TimeoutMS, int64(timeoutMaxMS))
		}
		there[t.Type] = true
	}
	return nil
}

// shown is the beginning of a line, for an error.
func shown(line []byte) string { return fmt.Sprintf("%.*q", shownMax, line) }
