package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/repeat"
)

// errRefusedOps is returned when the server refused some ops of a batch. Each of them is shown.
type errRefusedOps struct{ refused, all int }

func (e errRefusedOps) Error() string {
	return fmt.Sprintf("refused: %d of %s", e.refused, term.Count(e.all, "op"))
}

// NewBatchCommand returns the command `claimq batch`.
func NewBatchCommand(a *term.App) *cobra.Command {
	var atomic bool
	cmd := &cobra.Command{
		Use:   "batch FILE | -",
		Short: "Make many changes in one request",
		Long: `Make up to 1,000 changes in one request, in order. The file has one JSON object per
line, or an array of objects. Each has "op" (submit, claim, complete, fail, extend,
release, retry, cancel or delete), the task's "id" if the op needs one, and the
fields of that call. - is standard input.

Each op succeeds or fails by itself; with --atomic either all succeed or none is
done. The command adds a random idempotency_key to a submit and a random
claim_request_id to a claim that has none, so that it can safely retry.`,
		Example: `  claimq batch ops.ndjson
  echo '{"op":"cancel","id":17} {"op":"submit","task_type":"mail","params":{}}' | claimq batch - --atomic`,
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, args []string) (session.Act, error) {
		b, err := readBatch(a, args[0], atomic)
		return func(s session.Talk) error { return batch(cmd.Context(), s, b) }, err
	})
	cmd.Flags().BoolVar(&atomic, "atomic", false, "do all ops, or none")
	return cmd
}

type batchRequest struct {
	body []byte
	ops  []batchOp
	safe bool // repeating it is safe
}

// batchOp holds the fields of an op that the command reads.
type batchOp struct {
	Op             repeat.Op       `json:"op"`
	ID             json.RawMessage `json:"id"`
	IdempotencyKey json.RawMessage `json:"idempotency_key"`
	ClaimRequestID json.RawMessage `json:"claim_request_id"`
	ClaimToken     json.RawMessage `json:"claim_token"`
}

func readBatch(a *term.App, file string, atomic bool) (*batchRequest, error) {
	data, err := readInput(a, file)
	if err != nil {
		return nil, term.UsageErrorf("FILE: %w", err)
	}
	b := &batchRequest{safe: true}
	b.body = fmt.Appendf(nil, `{"atomic":%t,"ops":[`, atomic)
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var value json.RawMessage
		if err := dec.Decode(&value); err == io.EOF {
			break
		} else if err != nil {
			return nil, term.UsageErrorf("op %d: it is not JSON: %w", len(b.ops)+1, err)
		}
		if err := b.addAll(value); err != nil {
			return nil, err
		}
	}
	if len(b.ops) == 0 {
		return nil, term.UsageErrorf("there are no ops: give one JSON object a line, or an array of them")
	}
	b.body = append(b.body, "]}"...)
	return b, nil
}

// addAll adds one op, or all ops of an array.
func (b *batchRequest) addAll(value json.RawMessage) error {
	if value[0] != '[' {
		return b.add(value)
	}
	var values []json.RawMessage
	if err := json.Unmarshal(value, &values); err != nil {
		return term.UsageErrorf("op %d: %w", len(b.ops)+1, err)
	}
	for _, v := range values {
		if err := b.add(v); err != nil {
			return err
		}
	}
	return nil
}

// add puts an op into the request, byte for byte. It only adds a key if the op needs one.
func (b *batchRequest) add(raw json.RawMessage) error {
	var op batchOp
	if raw[0] != '{' {
		return term.UsageErrorf("op %d is not a JSON object", len(b.ops)+1)
	}
	if err := json.Unmarshal(raw, &op); err != nil {
		return term.UsageErrorf("op %d: %w", len(b.ops)+1, jsonError(err))
	}
	marked := isSet(op.ClaimToken)
	switch op.Op {
	case "":
		return term.UsageErrorf(`op %d has no "op": say what to do`, len(b.ops)+1)
	case repeat.OpSubmit:
		raw, marked = withKey("idempotency_key", op.IdempotencyKey, raw)
	case repeat.OpClaim:
		raw, marked = withKey("claim_request_id", op.ClaimRequestID, raw)
	}
	b.safe = b.safe && op.Op.BatchSafe(marked)
	if len(b.ops) > 0 {
		b.body = append(b.body, ',')
	}
	b.body = append(b.body, raw...)
	b.ops = append(b.ops, op)
	return nil
}

func isSet(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// withKey gives an op a random key if it has none. It leaves a null alone, because with that the user asks for an op
// without a key.
func withKey(name string, value json.RawMessage, raw []byte) (keyed []byte, marked bool) {
	if value == nil {
		return withField(name, strconv.AppendQuote(nil, rand.Text()), raw), true
	}
	return raw, isSet(value)
}

// batch sends the request and shows the result of each op.
func batch(ctx context.Context, s session.Talk, b *batchRequest) error {
	const unknown = "Repeat it only if every submit, claim and settling op has its own key, request id or token and there is no retry or delete; else look at the tasks first."
	r, err := session.Post("/api/batch", b.body, unknown)
	if err != nil {
		return err
	}
	r.Repeatable = b.safe
	var answer wire.BatchAnswer
	shown, err := s.Call(ctx, r, &answer)
	if err != nil {
		return failedOp(err, b)
	}
	if !shown {
		if err := showResults(s.App, b, &answer); err != nil {
			return err
		}
	}
	if answer.Failed > 0 {
		return errRefusedOps{answer.Failed, len(b.ops)}
	}
	return nil
}

// failedOp says because of which op an atomic batch was refused.
func failedOp(err error, b *batchRequest) error {
	var call *term.CallError
	var refusal *client.Error
	if !errors.As(err, &call) || !errors.As(err, &refusal) {
		return err
	}
	var details struct {
		FailedOp *int `json:"failed_op"`
	}
	if json.Unmarshal(refusal.Details, &details) == nil && details.FailedOp != nil && *details.FailedOp >= 0 && *details.FailedOp < len(b.ops) {
		i := *details.FailedOp
		call.About = fmt.Sprintf("nothing is done because of op %d, %s: ", i+1, term.Printable(string(b.ops[i].Op)))
	}
	return call
}

// showResults prints one row per op.
func showResults(a *term.App, b *batchRequest, answer *wire.BatchAnswer) error {
	rows := [][]string{{"OP", "WHAT", "TASK", "RESULT"}}
	for i := range min(len(b.ops), len(answer.Results)) {
		op, r := &b.ops[i], &answer.Results[i]
		id := string(op.ID)
		if r.Task != nil {
			id = strconv.FormatUint(r.Task.ID, 10)
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), term.Cell(string(op.Op)), term.Cell(id), resultText(op.Op, r)})
	}
	return a.Table(rows)
}

func resultText(op repeat.Op, r *wire.OpResult) string {
	switch {
	case !r.Success:
		return term.Printable(r.Error) + " (" + term.Printable(string(r.Code)) + ")"
	case op == repeat.OpSubmit && r.Created:
		return "submitted"
	case op == repeat.OpSubmit && r.Replaced:
		return "had that key, and has this task's params now"
	case op == repeat.OpSubmit:
		return "has that key already"
	case op == repeat.OpClaim && r.Task == nil:
		return claimedText(r.Tasks)
	case op == repeat.OpDelete:
		return "deleted"
	case op == repeat.OpExtend:
		return "the lease has " + term.ShowMS(r.LeaseRemainingMS) + " left"
	case r.Task == nil:
		return "done"
	}
	text := term.Printable(r.Task.Status)
	if r.Task.ClaimToken != nil && r.Task.Status == "claimed" {
		text += fmt.Sprintf(", token %d", *r.Task.ClaimToken)
	}
	if r.Task.CancelRequested {
		text += ", cancel asked"
	}
	return text
}

// claimedText lists the tasks that a claim of several returned, with their tokens.
func claimedText(tasks []wire.Task) string {
	if len(tasks) == 0 {
		return "nothing to claim"
	}
	names := make([]string, len(tasks))
	for i := range tasks {
		names[i] = strconv.FormatUint(tasks[i].ID, 10)
		if token := tasks[i].ClaimToken; token != nil {
			names[i] += fmt.Sprintf(" (token %d)", *token)
		}
	}
	return "claimed " + strings.Join(names, ", ")
}
