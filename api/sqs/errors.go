package sqs

import (
	"errors"
	"strconv"

	"github.com/claimq/claimq/api/sqs/shape"
	"github.com/claimq/claimq/api/sqs/sigv4"
)

// Error is an error of the SQS model.
type Error struct {
	Shape  string // in __type of JSON; SDKs choose the class of their error by it
	Code   string // in the header of JSON and in XML, "" = Shape
	Status int    // of HTTP
	Text   string
}

func (e *Error) Error() string { return e.code() + ": " + e.Text }

// code returns the code by which programs tell errors apart.
func (e *Error) code() string {
	if e.Code == "" {
		return e.Shape
	}
	return e.Code
}

// fault says whose fault the error is, as the protocol spells it.
func (e *Error) fault() string {
	if e.Status >= 500 {
		return "Receiver"
	}
	return "Sender"
}

// simpleQueue returns an error whose code differs from its shape by this prefix.
func simpleQueue(shape, text string) *Error {
	return &Error{Shape: shape, Code: "AWS.SimpleQueueService." + shape, Status: 400, Text: text}
}

func plain(shape, text string) *Error { return &Error{Shape: shape, Status: 400, Text: text} }

func invalidParameter(text string) *Error {
	return &Error{Shape: "InvalidParameterValueException", Code: "InvalidParameterValue", Status: 400, Text: text}
}

// badValue refuses the value of a parameter.
func badValue(name, value, reason string) *Error {
	return invalidParameter("Value " + shape.Shorten(value) + " for parameter " + name + " is invalid. Reason: " + reason)
}

func missing(name string) *Error {
	return &Error{Shape: "MissingRequiredParameterException", Code: "MissingParameter", Status: 400, Text: "The request must contain the parameter " + name + "."}
}

// malformed refuses a request that cannot be read.
func malformed(text string) *Error {
	return &Error{Shape: serialization, Status: 400, Text: text}
}

func noQueue(query bool) *Error {
	text := "The specified queue does not exist."
	if query {
		text = "The specified queue does not exist for this wsdl version."
	}
	return &Error{Shape: "QueueDoesNotExist", Code: "AWS.SimpleQueueService.NonExistentQueue", Status: 400, Text: text}
}

// noResource refuses a parameter of message move tasks that names what is not there.
func noResource(name string) *Error {
	return &Error{Shape: "ResourceNotFoundException", Status: 404, Text: "The resource that you specified for the " + name + " parameter doesn't exist."}
}

func badHandle(handle string) *Error {
	return plain("ReceiptHandleIsInvalid", "The input receipt handle \""+shape.Shorten(handle)+"\" is not a valid receipt handle.")
}

func notInFlight() *Error {
	return simpleQueue("MessageNotInflight", "The message is not in flight: its visibility timeout is over, or it was deleted.")
}

// Unsupported refuses what this endpoint does not do.
func Unsupported(text string) *Error { return simpleQueue("UnsupportedOperation", text) }

// Off refuses calls of a node whose endpoint is off.
func Off() *Error {
	return Unsupported("This node does not answer clients of Amazon SQS: start every node with --sqs-enabled.")
}

func unknownAttribute(name string) *Error {
	return plain("InvalidAttributeName", "Unknown Attribute "+shape.Shorten(name)+".")
}

func badAttribute(name string) *Error {
	return plain("InvalidAttributeValue", "Invalid value for the parameter "+name+".")
}

func unknownAction(name string) *Error {
	return &Error{Shape: "UnknownOperationException", Code: "InvalidAction", Status: 400, Text: "The action " + shape.Shorten(name) + " is not valid for this endpoint."}
}

// The errors of access. Their status is 403: at 400 some consumers poll again without a pause.
func denied(shape, code, text string) *Error {
	return &Error{Shape: shape, Code: code, Status: 403, Text: text}
}

// AccessDenied refuses what a credential may not do.
func AccessDenied(text string) *Error { return denied("AccessDeniedException", "AccessDenied", text) }

// NoToken refuses a request without a signature.
func NoToken() *Error {
	return denied("MissingAuthenticationTokenException", "MissingAuthenticationToken", "Request is missing Authentication Token")
}

// BadSignature refuses a request for an error of package sigv4.
func BadSignature(err error) *Error {
	if wrong := (*sigv4.WrongError)(nil); errors.As(err, &wrong) {
		return denied("InvalidSignatureException", "SignatureDoesNotMatch", wrong.Text)
	}
	if errors.Is(err, sigv4.ErrNone) {
		return NoToken()
	}
	return denied("IncompleteSignature", "", err.Error())
}

// UnknownClient refuses a signature of a credential that is not known.
func UnknownClient() *Error {
	return denied("UnrecognizedClientException", "InvalidClientTokenId", "The security token included in the request is invalid.")
}

// Throttled asks the client to come again later. At status 400 some SDKs would not.
func Throttled(text string) *Error { return denied("RequestThrottled", "", text) }

// Unavailable says that nothing was done, or that this is not known; SDKs repeat the call.
func Unavailable(text string) *Error {
	return &Error{Shape: "ServiceUnavailable", Status: 503, Text: text}
}

// Internal is an error of the server itself.
func Internal() *Error {
	return &Error{Shape: "InternalFailure", Status: 500, Text: "The request processing has failed because of an internal error."}
}

// TooLong refuses a body that is larger than the server takes.
func TooLong(most int) *Error {
	return simpleQueue("BatchRequestTooLong", "Batch requests cannot be longer than "+strconv.Itoa(batchBytes)+" bytes, and no request longer than "+strconv.Itoa(most)+".")
}

// Other returns an error for which SQS has no shape: of HTTP, or of the state.
func Other(status int, text string) *Error {
	return &Error{Shape: "InvalidRequest", Status: status, Text: text}
}

// Retries reports whether the client should repeat the call after a while.
func (e *Error) Retries() bool {
	return e.Status == 503 || e.Shape == "RequestThrottled"
}
