package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/claimq/claimq/client"
)

const (
	// protocol is the version of the protocol.
	protocol = 1
	// lineBytesMax bounds a line in both directions. It is also the API's bound on a complete. If
	// the cluster's bound is lower, it holds for what programs send.
	lineBytesMax = 8 << 20
	// The largest bounds a cluster can have for results, errors and follow-ups. Its own may be
	// lower.
	valueBytesMax = 1 << 20
	errorBytesMax = 16 << 10
	submitMax     = 1_000
	// progressBytesMax is the bound of every cluster.
	progressBytesMax = 4 << 10
	// Bounds of a hello.
	typesMax       = 1_000
	concurrencyMax = 1_000
	clientBytesMax = 128
	// timeoutMaxMS is one year, the longest timeout a program may ask for.
	timeoutMaxMS = 365 * 24 * 3_600_000
	// shownMax bounds how much of a line an error quotes.
	shownMax = 200
)

// programMessage is a line from a program. Its kind says which fields it may have.
type programMessage struct {
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
	Steps         json.RawMessage `json:"steps"`
	Error         string          `json:"error"`
	Permanent     bool            `json:"permanent"`
	RetryInMS     *int64          `json:"retry_in_ms"`
	MS            int64           `json:"ms"`
	Progress      json.RawMessage `json:"progress"`
}

// servedType is a task type that a program handles.
type servedType struct {
	Type        string `json:"type"`
	Concurrency int    `json:"concurrency"` // 0: up to the program's concurrency
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

// limitsOf returns the bounds for what programs send, from the cluster's; nil if the cluster does
// not tell them.
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
	Attributes          json.RawMessage   `json:"attributes,omitempty"`
	Signal              json.RawMessage   `json:"signal,omitempty"`
	Traceparent         string            `json:"traceparent,omitempty"`
	TimeoutMS           int64             `json:"timeout_ms"`
	ParentID            json.RawMessage   `json:"parent_id,omitempty"`
	Step                string            `json:"step,omitempty"`
	Dependencies        map[string]Result `json:"dependencies,omitempty"`
	DependenciesLeftOut bool              `json:"dependencies_left_out,omitempty"`
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

// isPlain reports whether the task has what most tasks have, and nothing else.
func (m *taskMessage) isPlain() bool {
	return m.Payload == nil && m.Labels == nil && m.Attributes == nil && m.Signal == nil && m.Traceparent == "" && m.ParentID == nil && m.Step == "" &&
		m.Dependencies == nil && !m.DependenciesLeftOut && typePattern.MatchString(m.Type) &&
		json.Valid(m.Params) && !bytes.ContainsAny(m.Params, "\r\n")
}

// line returns the task as a line. A plain one is encoded without encoding/json, which would take longer than everything
// else that is done to give it to a program.
func (m *taskMessage) line() ([]byte, error) {
	if !m.isPlain() {
		return lineOf(m)
	}
	const fields = `{"kind":"task","id":,"token":,"type":"","attempt":,"params":,"timeout_ms":}` + "\n"
	b := make([]byte, 0, len(fields)+len(m.Type)+len(m.Params)+4*len("9223372036854775807"))
	b = strconv.AppendUint(append(b, `{"kind":"task","id":`...), m.ID, 10)
	b = strconv.AppendInt(append(b, `,"token":`...), m.Token, 10)
	b = append(append(b, `,"type":"`...), m.Type...)
	b = strconv.AppendInt(append(b, `","attempt":`...), int64(m.Attempt), 10)
	b = append(append(b, `,"params":`...), m.Params...)
	b = strconv.AppendInt(append(b, `,"timeout_ms":`...), m.TimeoutMS, 10)
	return append(b, '}', '\n'), nil
}

// lineOf encodes a message as a line.
func lineOf(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(message)
	return b.Bytes(), err
}

// readDone reads a done without follow-ups in the form that the clients write, faster than encoding/json, because nearly
// every task ends with one. ok is false for any other line.
func readDone(line []byte) (m *programMessage, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"kind":"done","id":`))
	if !ok {
		return nil, false
	}
	id, rest := digits(rest)
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"token":`)); !ok {
		return nil, false
	}
	token, rest := digits(rest)
	if rest, ok = bytes.CutSuffix(rest, []byte("}")); !ok || id == 0 || token == 0 {
		return nil, false
	}
	m = &programMessage{Kind: kindDone, ID: uint64(id), Token: token}
	if len(rest) == 0 {
		return m, true
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"result":`)); !ok || !json.Valid(rest) {
		return nil, false
	}
	m.Result = bytes.Clone(bytes.TrimSpace(rest))
	return m, true
}

// digits reads the number at the beginning of b. It stops after a leading 0, and once the number is larger than any id or
// token.
func digits(b []byte) (n int64, rest []byte) {
	for len(b) > 0 && b[0] >= '0' && b[0] <= '9' && n < 1<<53 && (n > 0 || b[0] > '0') {
		n, b = n*10+int64(b[0]-'0'), b[1:]
	}
	return n, b
}

// read decodes a line from a program.
func read(line []byte) (*programMessage, error) {
	var s programMessage
	if !utf8.Valid(line) {
		return nil, errors.New("it is not UTF-8")
	}
	if done, ok := readDone(line); ok {
		return done, nil
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
		if string(s.Steps) == "null" {
			s.Steps = nil
		}
		if len(s.Submit) > 0 && s.Submit[0] != '[' {
			return nil, errors.New("submit must be an array")
		}
		if len(s.Steps) > 0 && s.Steps[0] != '[' {
			return nil, errors.New("steps must be an array")
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

func (s *programMessage) checkHello() error {
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

// shown quotes the beginning of a line for an error.
func shown(line []byte) string { return fmt.Sprintf("%.*q", shownMax, line) }
