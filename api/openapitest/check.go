package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Exchange is a request and its answer.
type Exchange struct {
	Method string
	Target string // path and query as sent
	Sent   []byte // the request's body
	Status int
	Header http.Header
	Body   []byte
}

// transport are the headers of HTTP itself, and those that only the description's introduction mentions.
var transport = map[string]bool{
	"Cache-Control": true, "Connection": true, "Content-Encoding": true, "Content-Length": true, "Content-Type": true, "Date": true, "Transfer-Encoding": true, "Vary": true,
	"X-Content-Type-Options": true, "X-Claimq-Page": true, "X-Claimq-Node": true, "Set-Cookie": true, // of every answer, or every answer to the page
}

// Check returns how the answer differs from the description, or nil. If the request succeeded, it is checked, too.
func (c *Checker) Check(e Exchange) error {
	problem := c.check(&e)
	if problem == nil {
		return nil
	}
	const most = 700
	body := string(e.Body[:min(len(e.Body), most)])
	return fmt.Errorf("the description does not have what %s %.200s answered, %d %s: %w", e.Method, e.Target, e.Status, body, problem)
}

func (c *Checker) check(e *Exchange) error {
	target, query, _ := strings.Cut(e.Target, "?")
	var op *openapi3.Operation
	p := c.find(target)
	if p != nil {
		op = p.operation(e.Method)
	}
	response := c.response(e, p, op)
	if response == nil {
		return errors.New("no such status")
	}
	if err := checkHeaders(response, e.Header); err != nil {
		return err
	}
	if err := c.checkBody(response, e); err != nil {
		return err
	}
	if op == nil || e.Status/100 != 2 {
		return nil
	}
	return checkRequest(op, query, e.Sent)
}

// response returns the description of the answer's status, or nil.
func (c *Checker) response(e *Exchange, p *path, op *openapi3.Operation) *openapi3.Response {
	name := ""
	switch {
	case op != nil:
		if ref := op.Responses.Status(e.Status); ref != nil {
			return ref.Value
		}
		return nil
	case e.Status == http.StatusNoContent && e.Method == http.MethodOptions && p != nil:
		name = "Options"
	case e.Status == http.StatusMethodNotAllowed && p != nil:
		name = "MethodNotAllowed"
	case e.Status == http.StatusNotFound && p == nil:
		name = "NoSuchPath"
	case e.Status == http.StatusBadRequest:
		name = "Malformed"
	case e.Status == http.StatusUnauthorized:
		name = "Unauthorized"
	case e.Status == http.StatusForbidden:
		name = "Forbidden"
	case e.Status == http.StatusTooManyRequests:
		name = "RateLimited"
	case e.Status == http.StatusRequestEntityTooLarge:
		name = "TooLarge"
	case e.Status == http.StatusServiceUnavailable:
		name = "Unavailable"
	default:
		return nil
	}
	return c.doc.Components.Responses[name].Value
}

// checkHeaders compares the headers of an answer with the described ones.
func checkHeaders(response *openapi3.Response, header http.Header) error {
	described := make(map[string]*openapi3.Header, len(response.Headers))
	for name, ref := range response.Headers {
		described[textproto.CanonicalMIMEHeaderKey(name)] = ref.Value
		if ref.Value.Required && header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	for name, values := range header {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if header.Get("Access-Control-Allow-Origin") != "" && strings.HasPrefix(name, "Access-Control-") {
			continue // set by browsers
		}
		h := described[name]
		if h == nil {
			if transport[name] {
				continue
			}
			return fmt.Errorf("the header %s", name)
		}
		if err := visit(h.Schema, typed(h.Schema.Value, values[0])); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	return nil
}

// typed converts a text to the type that the schema wants, if possible.
func typed(schema *openapi3.Schema, text string) any {
	switch {
	case schema.Type.Is(openapi3.TypeInteger):
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return float64(n)
		}
	case schema.Type.Is(openapi3.TypeBoolean):
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case schema.Type.Is(openapi3.TypeArray):
		var list []any
		for part := range strings.SplitSeq(text, ",") {
			list = append(list, typed(schema.Items.Value, part))
		}
		return list
	}
	return text
}

// checkBody compares the body of an answer with the described one.
func (c *Checker) checkBody(response *openapi3.Response, e *Exchange) error {
	if e.Method == http.MethodHead {
		return nil // the headers about its body are compared with GET's
	}
	if len(response.Content) == 0 {
		if len(e.Body) > 0 {
			return errors.New("a body")
		}
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(e.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("the content type %q: %w", e.Header.Get("Content-Type"), err)
	}
	content := response.Content[mediaType]
	if content == nil {
		return fmt.Errorf("the content type %s", mediaType)
	}
	switch mediaType {
	case "application/json":
	case "text/event-stream":
		return c.checkStream(string(e.Body))
	default:
		return visit(content.Schema, string(e.Body))
	}
	body, err := decode(e.Body)
	if err != nil {
		return err
	}
	return visit(content.Schema, body)
}

// checkStream compares the data of server-sent events with the schemas Event and, for the event error, Refusal.
func (c *Checker) checkStream(text string) error {
	for block := range strings.SplitSeq(text, "\n\n") {
		schema := "Event"
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case name == "event" && value == "error":
				schema = "Refusal"
			case name == "event" && value != "":
				return fmt.Errorf("the event %s", value)
			case name == "data":
				data, err := decode([]byte(value))
				if err != nil {
					return err
				}
				if err := visit(c.doc.Components.Schemas[schema], data); err != nil {
					return fmt.Errorf("an event's data: %w", err)
				}
			}
		}
	}
	return nil
}

// visit returns how a value differs from its schema, or nil.
func visit(schema *openapi3.SchemaRef, value any) error {
	return schema.Value.VisitJSON(value, openapi3.DisableSchemaErrorDetails())
}

// decode decodes JSON, without changing numbers.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	return v, nil
}

// checkRequest compares a successful request with the described one.
func checkRequest(op *openapi3.Operation, query string, sent []byte) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("the query: %w", err)
	}
	if op.Tags[0] == "health" || op.Tags[0] == "page" {
		values = nil // additional ones are ignored
	}
	for name, texts := range values {
		param := op.Parameters.GetByInAndName(openapi3.ParameterInQuery, name)
		if param == nil {
			return fmt.Errorf("the query parameter %s", name)
		}
		for _, text := range texts {
			if err := visit(param.Schema, typed(param.Schema.Value, text)); err != nil {
				return fmt.Errorf("the query parameter %s: %w", name, err)
			}
		}
	}
	if op.RequestBody == nil || len(bytes.TrimSpace(sent)) == 0 {
		return nil // the body of a call without one is not read
	}
	body, err := decode(sent)
	if err != nil {
		return err
	}
	schema := op.RequestBody.Value.Content["application/json"].Schema
	if err := visit(schema, withoutNulls(schema.Value, body)); err != nil {
		return fmt.Errorf("the request: %w", err)
	}
	return nil
}

// withoutNulls removes null fields from a request, because they count as absent.
func withoutNulls(schema *openapi3.Schema, value any) any {
	for _, alternative := range schema.OneOf {
		value = withoutNulls(alternative.Value, value)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, ref := range schema.Properties {
			v, given := value[name]
			if given && v == nil && !ref.Value.Nullable {
				delete(value, name)
			} else if given {
				value[name] = withoutNulls(ref.Value, v)
			}
		}
	case []any:
		for i := range value {
			if schema.Items != nil {
				value[i] = withoutNulls(schema.Items.Value, value[i])
			}
		}
	}
	return value
}
