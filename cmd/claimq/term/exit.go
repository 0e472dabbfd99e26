package term

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

// These exit codes are part of the contract. A node that stops because of its disk has others (docs/operations.md).
const (
	ExitDone    = 0
	ExitRefused = 1 // the server refused
	ExitUsage   = 2 // wrong usage
	ExitUnknown = 3 // no server, or the outcome is unknown
	ExitNone    = 4 // nothing to claim, or not found
	ExitDiffers = 5 // apply --dry-run: the cluster differs from the file
)

// usageError is returned for an invalid command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// UsageErrorf makes an error that ends the process with exit code 2. %w wraps an error.
func UsageErrorf(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// NoTaskError is returned when a claim of several tasks finds none. The server refuses a claim of one task in that
// case, but not this one. The error has the text of the refusal.
type NoTaskError struct{}

func (NoTaskError) Error() string { return "No pending tasks available (no_pending_tasks)" }

// NotEndedError is returned when a task has not ended within the time to wait.
type NotEndedError struct {
	ID     uint64
	Status string
}

func (e *NotEndedError) Error() string {
	return fmt.Sprintf("task %d has not ended yet: it is %s; 'claimq why %d' says why", e.ID, Printable(e.Status), e.ID)
}

// DiffersError is returned when a dry run has found differences.
type DiffersError struct{ Objects int }

func (e *DiffersError) Error() string {
	return "the cluster differs from the file in " + Count(e.Objects, "object")
}

// CallError is a failed call to a server.
type CallError struct {
	About   string // what the call was for, if users need it; ends in ": "
	Err     error
	Unknown string   // what to do if the outcome is unknown
	Asked   []string // the endpoints
}

// AskedAt adds to err the endpoints where its call was tried, unless it has them already.
func AskedAt(endpoints []string, err error) error {
	var call *CallError
	if errors.As(err, &call) && call.Asked == nil {
		call.Asked = endpoints
	}
	return err
}

func (e *CallError) Error() string { return e.About + e.Err.Error() }
func (e *CallError) Unwrap() error { return e.Err }

// ExitCode returns the exit code for an error.
func ExitCode(err error) int {
	var usage *usageError
	var call *CallError
	var notEnded *NotEndedError
	var notHeld *NotHeldError
	var differs *DiffersError
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrStopped):
		return ExitUnknown
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, NoTaskError{}):
		return ExitNone
	case errors.As(err, &notEnded):
		return ExitUnknown
	case errors.As(err, &differs):
		return ExitDiffers
	case errors.As(err, &notHeld) && notHeld.NotFound:
		return ExitNone
	case errors.As(err, &call):
		return callExitCode(call)
	default:
		return ExitRefused
	}
}

func callExitCode(call *CallError) int {
	var refusal *client.Error
	if errors.Is(call, client.ErrOutcomeUnknown) || !errors.As(call, &refusal) {
		return ExitUnknown
	}
	switch code := wire.Code(refusal.Code); code {
	case wire.CodeTaskNotFound, wire.CodeNoPendingTasks, wire.CodeScheduleNotFound:
		return ExitNone
	case wire.CodeNoLeader, wire.CodeShuttingDown:
		return ExitUnknown
	case "": // the answer is not from a claimq server
		if refusal.Status >= 500 {
			return ExitUnknown
		}
	default:
		if refusal.Status == http.StatusBadRequest && detailsOf(refusal).Field != "" {
			return ExitUsage
		}
	}
	return ExitRefused
}

// ErrorText returns the user's text for an error of cmd: what happened, and what to do. It names flags and arguments of
// cmd in place of the API's fields; cmd may be nil.
func ErrorText(cmd *cobra.Command, err error) string {
	var call *CallError
	if !errors.As(err, &call) {
		return err.Error()
	}
	return call.About + callText(cmd, call)
}

func callText(cmd *cobra.Command, call *CallError) string {
	var refusal *client.Error
	switch isRefusal := errors.As(call, &refusal); {
	case errors.Is(call, client.ErrOutcomeUnknown):
		return Printable(call.Err.Error()) + "\n" + call.Unknown
	case isTLSError(call):
		return Printable(call.Err.Error()) + "\nThe two sides do not trust each other: --ca-file names the authority that signed the nodes' certificates, --cert-file and --key-file this client's own where they want one."
	case errors.Is(call, context.Canceled):
		return "stopped before there was an answer"
	case errors.Is(call, http.ErrSchemeMismatch):
		return noAnswerText(call) + "\nIt is without TLS: the endpoint must begin with http://."
	case !isRefusal:
		return noAnswerText(call) + "\nStart nodes with 'claimq dev', or say where they are with --endpoint or CLAIMQ_ENDPOINTS."
	case refusal.Code == "":
		return Printable(refusal.Error()) + "\nIt is not claimq that answered: check --endpoint, and a proxy on the way."
	default:
		what, advice := inWords(cmd, refusal, detailsOf(refusal).Field)
		text := Printable(what) + " (" + Printable(refusal.Code) + ")" + against(refusal)
		if advice != "" && advice != what {
			text += "\n" + Printable(advice)
		}
		if wire.Code(refusal.Code) == wire.CodeUnauthorized {
			text += "\nCLAIMQ_API_KEY, --api-key or the file of --api-key-file has the key or token; 'claimq key generate' makes a key for the servers' configuration."
		}
		return text
	}
}

// noAnswerText names the nodes that did not answer, and the reason of the last one.
func noAnswerText(call *CallError) string {
	text := call.Err.Error()
	if last := (*url.Error)(nil); errors.As(call.Err, &last) {
		text = last.Err.Error()
	}
	text = Printable(text)
	if len(call.Asked) == 0 {
		return text
	}
	return "no node answered at " + Printable(strings.Join(call.Asked, ", ")) + "\n" + text
}

// details are the fields of a refusal that its text may leave out.
type details struct {
	TaskID   uint64  `json:"task_id"`
	WorkerID *string `json:"worker_id"`
	Field    string  `json:"field"`
}

func detailsOf(refusal *client.Error) (d details) {
	if json.Unmarshal(refusal.Details, &d) != nil {
		return details{}
	}
	return d
}

// against names the task or worker that prevents the call, if the text leaves that to the details.
func against(refusal *client.Error) string {
	details := detailsOf(refusal)
	switch code := wire.Code(refusal.Code); {
	case (code == wire.CodeTaskAlreadyClaimed || code == wire.CodeWrongWorker) && details.WorkerID != nil:
		return ": by " + Printable(*details.WorkerID)
	case code == wire.CodeMaxAttemptsReached && details.TaskID != 0: // this may be a step
		return fmt.Sprintf(": task %d", details.TaskID)
	}
	return ""
}

// isTLSError reports whether client and server refuse each other's certificates.
func isTLSError(err error) bool {
	var ours *tls.CertificateVerificationError
	var theirs *net.OpError // the server's alert
	return errors.As(err, &ours) || errors.As(err, &theirs) && theirs.Op == "remote error"
}

// NotHeldError is returned when a processor does not get, or no longer has, the claim on a finalization. The server
// does not refuse such a call.
type NotHeldError struct {
	Text     string
	NotFound bool // the task does not exist
}

func (e *NotHeldError) Error() string { return e.Text }
