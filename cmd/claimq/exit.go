package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

// The exit codes of the contract. A node that had to stop for its disk has
// others (docs/operations.md).
const (
	exitDone    = 0
	exitRefused = 1 // the server refused
	exitUsage   = 2 // wrong usage
	exitUnknown = 3 // no server, or the outcome is unknown
	exitNone    = 4 // nothing to claim, or not found
)

// usageError is returned for a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usageErrorf makes an error that ends the process with exit code 2. %w wraps.
func usageErrorf(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// noTaskError is returned when a claim of several found none: unlike that of one,
// such an answer is no refusal. It has the refusal's words.
type noTaskError struct{}

func (noTaskError) Error() string { return "No pending tasks available (no_pending_tasks)" }

// notEndedError is returned when a task has not ended in the time that was to be
// waited for it.
type notEndedError struct {
	id     uint64
	status string
}

func (e *notEndedError) Error() string {
	return fmt.Sprintf("task %d has not ended yet: it is %s; 'claimq why %d' says why", e.id, printable(e.status), e.id)
}

// callError is a call to a server that did not succeed.
type callError struct {
	about   string // what the call was about, if the user needs to know; ends in ": "
	err     error
	unknown string   // what to do when the outcome is unknown
	asked   []string // the endpoints
}

// askedAt notes at which endpoints the call was tried that err is about, unless that is
// known already.
func askedAt(endpoints []string, err error) error {
	var call *callError
	if errors.As(err, &call) && call.asked == nil {
		call.asked = endpoints
	}
	return err
}

func (e *callError) Error() string { return e.about + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// exitCode is the one table from error to exit code.
func exitCode(err error) int {
	var usage *usageError
	var call *callError
	var notEnded *notEndedError
	var notHeld *notHeldError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, noTaskError{}):
		return exitNone
	case errors.As(err, &notEnded):
		return exitUnknown
	case errors.As(err, &notHeld) && notHeld.notFound:
		return exitNone
	case errors.As(err, &call):
		return callExitCode(call)
	default:
		return exitRefused
	}
}

func callExitCode(call *callError) int {
	var refusal *client.Error
	if errors.Is(call, client.ErrOutcomeUnknown) || !errors.As(call, &refusal) {
		return exitUnknown
	}
	switch wire.Code(refusal.Code) {
	case wire.CodeTaskNotFound, wire.CodeNoPendingTasks, wire.CodeScheduleNotFound:
		return exitNone
	case wire.CodeNoLeader, wire.CodeShuttingDown:
		return exitUnknown
	case "": // not one of our servers
		if refusal.Status >= 500 {
			return exitUnknown
		}
	}
	return exitRefused
}

// errorText is what the user reads of an error: what happened, and what to do.
func errorText(err error) string {
	var call *callError
	if !errors.As(err, &call) {
		return err.Error()
	}
	return call.about + callText(call)
}

func callText(call *callError) string {
	var refusal *client.Error
	switch isRefusal := errors.As(call, &refusal); {
	case errors.Is(call, client.ErrOutcomeUnknown):
		return printable(call.err.Error()) + "\n" + call.unknown
	case isTLSError(call):
		return printable(call.err.Error()) + "\nThe two sides do not trust each other: --ca-file names the authority that signed the nodes' certificates, --cert-file and --key-file this client's own where they want one."
	case errors.Is(call, context.Canceled):
		return "stopped before there was an answer"
	case !isRefusal:
		return noAnswerText(call) + "\nStart nodes with 'claimq dev', or say where they are with --endpoint or CLAIMQ_ENDPOINTS."
	case refusal.Code == "":
		return printable(refusal.Error()) + "\nIt is not claimq that answered: check --endpoint, and a proxy on the way."
	default:
		text := printable(refusal.Text) + " (" + printable(refusal.Code) + ")" + against(refusal)
		if refusal.Advice != "" && refusal.Advice != refusal.Text {
			text += "\n" + printable(refusal.Advice)
		}
		if wire.Code(refusal.Code) == wire.CodeUnauthorized {
			text += "\nCLAIMQ_API_KEY, --api-key or the file of --api-key-file has the key or token; 'claimq key generate' makes a key for the servers' configuration."
		}
		return text
	}
}

// noAnswerText names who did not answer, and why.
func noAnswerText(call *callError) string {
	text := printable(call.err.Error())
	if len(call.asked) == 0 {
		return text
	}
	return "no node answered at " + printable(strings.Join(call.asked, ", ")) + "\n" + text
}

// against is who or what stands against the call, where the text leaves it to the
// details.
func against(refusal *client.Error) string {
	var details struct {
		TaskID   uint64  `json:"task_id"`
		WorkerID *string `json:"worker_id"`
	}
	if json.Unmarshal(refusal.Details, &details) != nil {
		return ""
	}
	switch code := wire.Code(refusal.Code); {
	case (code == wire.CodeTaskAlreadyClaimed || code == wire.CodeWrongWorker) && details.WorkerID != nil:
		return ": by " + printable(*details.WorkerID)
	case code == wire.CodeMaxAttemptsReached && details.TaskID != 0: // it may be a step
		return fmt.Sprintf(": task %d", details.TaskID)
	}
	return ""
}
