package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/procs"
)

const (
	nameMax  = 128     // bytes of a name
	itemsMax = 1_000   // of a request
	valueMax = 1 << 20 // bytes of a value
	errorMax = 16 << 10

	typesCount   = 12_000
	largeCount   = 12 // tasks with large params and a large result
	failedCount  = 10_000
	longErrors   = 400 // of these, as many as one batch fails
	labeledCount = 3 * itemsMax
	workersCount = 3 * itemsMax
	triesCount   = 20 // of one task, each with a long error
	stepsCount   = 1_000
	stepsBefore  = 55 // that each step depends on
	resultsCount = 9  // steps with large results
	largePlans   = 20 // schedules with large params
	labeledPlans = 300
)

// The task types of the state. A row's own tasks have typeRow.
const (
	typeLarge   = "large"
	typeFailed  = "failed"
	typeLabels  = "labels"
	typeHeld    = "held"
	typeTried   = "tried"
	typeSteps   = "steps"
	typeResults = "results"
	typeRow     = "row"
	typeLate    = "late"
	typeQueue   = "queue"
)

const worker = "w"

// state is the state that the rows need, and the node at which they are prepared.
type state struct {
	node  *procs.Node // the leader
	tasks map[string]*wire.Task
	fresh []uint64 // ids of the row's own tasks
	round int      // how often rows were begun
}

// field returns a JSON text of the given size.
func field(letter string, bytes int) string { return `"` + strings.Repeat(letter, bytes-2) + `"` }

// name returns the n-th name of nameMax bytes that begins so.
func name(begin string, n int) string {
	number := fmt.Sprintf("-%06d", n)
	return begin + strings.Repeat("x", nameMax-len(begin)-len(number)) + number
}

// labels are as many as a task may have, each as long as it may be.
func labels() string {
	all := make([]string, 16)
	for i := range all {
		all[i] = fmt.Sprintf(`"%064d":"%064d"`, i, i)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// list is a field of that name with count elements.
func list(name string, count int, element func(i int) string) string {
	all := make([]string, count)
	for i := range all {
		all[i] = element(i)
	}
	return `"` + name + `":[` + strings.Join(all, ",") + `]`
}

// call makes one request at the leader, which must succeed.
func (s *state) call(ctx context.Context, method, target, body string) (*wire.Answer, error) {
	var answer wire.Answer
	var sent any
	if body != "" {
		sent = json.RawMessage(body)
	}
	return &answer, s.node.Ask(ctx, method, target, sent, &answer)
}

func (s *state) post(ctx context.Context, target, body string) (*wire.Answer, error) {
	return s.call(ctx, http.MethodPost, target, body)
}

// submit submits count tasks with these fields, as many as may be in a request, and returns
// their ids.
func (s *state) submit(ctx context.Context, count int, fields func(i int) string) (ids []uint64, err error) {
	for from := 0; from < count; from += itemsMax {
		answer, err := s.post(ctx, "/api/tasks", "{"+list("tasks", min(itemsMax, count-from), func(i int) string { return "{" + fields(from+i) + "}" })+"}")
		if err != nil {
			return nil, err
		}
		for i := range answer.Results {
			ids = append(ids, answer.Results[i].ID)
		}
	}
	return ids, nil
}

// one submits a task and keeps it by its name.
func (s *state) one(ctx context.Context, name, fields string) error {
	answer, err := s.post(ctx, "/api/tasks", `{"idempotency_key":"`+name+`",`+fields+`}`)
	if err == nil {
		s.tasks[name] = answer.Task
	}
	return err
}

// claim claims up to limit tasks of the type, as the worker.
func (s *state) claim(ctx context.Context, taskType string, limit int) (*wire.Answer, error) {
	return s.post(ctx, "/api/tasks/claim", fmt.Sprintf(`{"worker_id":%q,"task_types":[%q],"limit":%d,"claim_request_id":%q,"lease_ms":86400000}`, worker, taskType, limit, taskType))
}

// fill makes the state.
func (s *state) fill(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.fillTypes, s.fillShares, s.fillLarge, s.fillFailed, s.fillLabels, s.fillHeld, s.fillTried, s.fillSteps, s.fillResults, s.fillPlans, s.fillQueues} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	for i := range 15 {
		if err := s.node.Ask(ctx, http.MethodPost, "/api/cluster/tokens", json.RawMessage(fmt.Sprintf(`{"token_sha256":"%064x","expires_in_ms":3600000}`, i+1)), nil); err != nil {
			return err
		}
	}
	return nil
}

// fillTypes makes many types with long names.
func (s *state) fillTypes(ctx context.Context) error {
	_, err := s.submit(ctx, typesCount, func(i int) string { return fmt.Sprintf(`"task_type":%q,"params":1`, name("type", i)) })
	return err
}

// sharesCount is the number of share keys of one type.
const sharesCount = 10_000

// fillShares makes a type with many long share keys, one of them with settings.
func (s *state) fillShares(ctx context.Context) error {
	if _, err := s.submit(ctx, sharesCount, func(i int) string {
		return fmt.Sprintf(`"task_type":"shares","params":1,"share_key":%q`, name("share", i))
	}); err != nil {
		return err
	}
	return s.node.Ask(ctx, http.MethodPut, "/api/types/shares/shares/acme", json.RawMessage(`{"weight":300}`), nil)
}

// fillLarge makes tasks with large params and results, and one that waits.
func (s *state) fillLarge(ctx context.Context) error {
	for i := range largeCount {
		if err := s.one(ctx, fmt.Sprint("large-", i), `"task_type":"`+typeLarge+`","params":`+field("p", valueMax/2)); err != nil {
			return err
		}
		task := s.tasks[fmt.Sprint("large-", i)]
		claimed, err := s.post(ctx, fmt.Sprintf("/api/tasks/%d/claim", task.ID), s.holder(""))
		if err != nil {
			return err
		}
		task.ClaimToken = claimed.Task.ClaimToken
		if _, err := s.post(ctx, fmt.Sprintf("/api/tasks/%d/complete", task.ID), s.holder(`,"result":`+field("r", valueMax-100))); err != nil {
			return err
		}
	}
	return s.one(ctx, "waits", `"task_type":"waits","params":`+field("p", valueMax))
}

// holder is a body of the worker's with more fields.
func (s *state) holder(more string) string { return `{"worker_id":"` + worker + `"` + more + `}` }

// fillFailed makes failed tasks, each with a different error, some of them as long as errors may be.
func (s *state) fillFailed(ctx context.Context) error {
	if _, err := s.submit(ctx, failedCount, func(int) string { return `"task_type":"` + typeFailed + `","params":1,"max_attempts":1` }); err != nil {
		return err
	}
	for from := 0; from < failedCount; from += longErrors {
		answer, err := s.post(ctx, "/api/tasks/claim", fmt.Sprintf(`{"worker_id":%q,"task_types":[%q],"limit":%d}`, worker, typeFailed, longErrors))
		if err != nil {
			return err
		}
		size := 400
		if from == 0 {
			size = errorMax
		}
		ops := list("ops", len(answer.Tasks), func(i int) string {
			text := word(from+i) + strings.Repeat("e", size-wordBytes)
			return fmt.Sprintf(`{"op":"fail","id":%d,"worker_id":%q,"error":%q}`, answer.Tasks[i].ID, worker, text)
		})
		if _, err := s.post(ctx, "/api/batch", "{"+ops+"}"); err != nil {
			return err
		}
	}
	return nil
}

// wordBytes is the length of a word.
const wordBytes = 5

// word returns the n-th word: errors that differ in numbers alone are one group.
func word(n int) string {
	text := make([]byte, wordBytes)
	for i := range text {
		text[i] = byte('a' + n%26)
		n /= 26
	}
	return string(text)
}

// fillLabels makes tasks with many labels, and has as many as one request may claim claimed by one.
func (s *state) fillLabels(ctx context.Context) error {
	all := labels()
	if _, err := s.submit(ctx, labeledCount, func(i int) string {
		return fmt.Sprintf(`"task_type":%q,"params":1,"labels":%s,"idempotency_key":%q`, typeLabels, all, name("key", i)+name("key", i))
	}); err != nil {
		return err
	}
	_, err := s.claim(ctx, typeLabels, itemsMax)
	return err
}

// fillHeld has many workers with long names hold a task each.
func (s *state) fillHeld(ctx context.Context) error {
	if _, err := s.submit(ctx, workersCount, func(int) string { return `"task_type":"` + typeHeld + `","params":1` }); err != nil {
		return err
	}
	for from := 0; from < workersCount; from += itemsMax {
		ops := list("ops", itemsMax, func(i int) string {
			return fmt.Sprintf(`{"op":"claim","worker_id":%q,"task_types":[%q],"lease_ms":86400000}`, name("worker", from+i), typeHeld)
		})
		if _, err := s.post(ctx, "/api/batch", "{"+ops+"}"); err != nil {
			return err
		}
	}
	return nil
}

// fillTried makes a task that has failed as often as is remembered, and is claimed with a large progress.
func (s *state) fillTried(ctx context.Context) error {
	if err := s.one(ctx, "tried", `"task_type":"`+typeTried+`","max_attempts":0,"labels":`+labels()+`,"params":`+field("p", valueMax/2)); err != nil {
		return err
	}
	target := fmt.Sprintf("/api/tasks/%d", s.tasks["tried"].ID)
	for range triesCount {
		if _, err := s.post(ctx, target+"/claim", s.holder("")); err != nil {
			return err
		}
		if _, err := s.post(ctx, target+"/fail", s.holder(`,"retry_in_ms":0,"error":`+field("e", errorMax))); err != nil {
			return err
		}
	}
	if _, err := s.post(ctx, target+"/claim", s.holder(`,"lease_ms":86400000`)); err != nil {
		return err
	}
	_, err := s.post(ctx, target+"/extend", s.holder(`,"lease_ms":86400000,"progress":`+field("p", 4<<10)))
	return err
}

// manySteps are the steps of a parent, each of which depends on many others.
func manySteps() string {
	return list("steps", stepsCount, func(i int) string {
		before := min(i, stepsBefore)
		return fmt.Sprintf(`{"step":%q,"task_type":%q,"params":1,%s}`, name("step", i), typeSteps,
			list("depends_on", before, func(k int) string { return fmt.Sprintf("%q", name("step", i-before+k)) }))
	})
}

// fillSteps makes a parent of many steps.
func (s *state) fillSteps(ctx context.Context) error {
	return s.one(ctx, "steps", `"params":1,`+manySteps())
}

// fillResults makes a parent whose steps have large results, and which waits for its processor.
func (s *state) fillResults(ctx context.Context) error {
	if err := s.one(ctx, "results", `"params":1,"finalize":"claim",`+list("steps", resultsCount, func(i int) string {
		return fmt.Sprintf(`{"step":%q,"task_type":%q,"params":1}`, name("step", i), typeResults)
	})); err != nil {
		return err
	}
	answer, err := s.claim(ctx, typeResults, resultsCount)
	if err != nil {
		return err
	}
	for i := range answer.Tasks {
		if _, err := s.post(ctx, fmt.Sprintf("/api/tasks/%d/complete", answer.Tasks[i].ID), s.holder(`,"result":`+field("r", valueMax-100))); err != nil {
			return err
		}
	}
	return nil
}

// plan is the body of a schedule whose task has these fields.
func plan(fields string) string { return `{"every_ms":86400000,"task":{` + fields + `}}` }

// fillPlans makes schedules with large params, and others with many labels.
func (s *state) fillPlans(ctx context.Context) error {
	for i := range largePlans + labeledPlans {
		fields := `"params":1,"labels":` + labels()
		if i < largePlans {
			fields = `"params":` + field("p", valueMax)
		}
		if _, err := s.call(ctx, http.MethodPut, "/api/schedules/"+name("plan", i), plan(fields)); err != nil {
			return err
		}
	}
	return nil
}

// fillQueues makes a queue of SQS with ten large messages, which are received, and another for the row's own.
func (s *state) fillQueues(ctx context.Context) error {
	attributes := `"MessageAttributes":{"a":{"DataType":"String","StringValue":` + field("v", errorMax) + `}}`
	for _, call := range [][2]string{
		{"CreateQueue", `"QueueName":"` + typeQueue + `"`},
		{"CreateQueue", `"QueueName":"` + typeRow + `"`},
		{"SendMessageBatch", sqsEntries(`"MessageBody":` + field("x", valueMax/10-2*errorMax) + `,` + attributes)},
		{"ReceiveMessage", sqsReceive},
	} {
		a := asker{addr: s.node.HTTPAddr}
		status := 0
		err := a.ask(ctx, http.MethodPost, "/", call[0], "{"+call[1]+"}", func(came int) { status = came })
		a.close()
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("%s: status %d, %w", call[0], status, err)
		}
	}
	return nil
}

// refresh submits the row's own tasks, as many as there are connections.
func (s *state) refresh(ctx context.Context, count int) (err error) {
	s.fresh, err = s.submit(ctx, count, func(int) string {
		return `"task_type":"` + typeRow + `","retention_ms":0,"params":1,"labels":` + labels()
	})
	return err
}

// clear removes the row's own tasks.
func (s *state) clear(ctx context.Context) error {
	for _, taskType := range []string{typeRow, typeLate} {
		for more := true; more; {
			var answer struct {
				More bool `json:"more"`
			}
			if err := s.node.Ask(ctx, http.MethodPost, "/api/tasks/actions", json.RawMessage(fmt.Sprintf(`{"action":"cancel","filter":{"task_type":%q}}`, taskType)), &answer); err != nil {
				return err
			}
			more = answer.More
		}
	}
	return nil
}
