package record

// What a record costs in memory beside its own bytes: the structure, its place
// in a page, and its places in the indexes.
const (
	taskBytes           = 430
	restingBytes        = 70   // of a task that is kept as bytes and waits
	endedBytes          = 135  // the same of one that has ended: it has more times, and is in two indexes
	PlaceBytes          = 16   // of one place in a page, and of the list of what rests in it
	groupBytes          = 180  // of a group that has tasks which have not ended
	typeBytes           = 1580 // of a task type, with its first queue and level
	queueBytes          = 320  // of another number of attempts that claimable tasks of a type have left
	levelBytes          = 350  // of another priority of those in one queue
	keyBytes            = 18   // of its place in the index
	attemptBytes        = 64
	requestBytes        = 240
	claimBytes          = 16 // of one claim in a request, or of one follow-up
	restingRequestBytes = 60 // of a request without a live claim
	restingClaimBytes   = 12
	thenBytes           = 64
	optionsBytes        = 112
	backoffBytes        = 32
	labelBytes          = 32
)

// BytesOfType estimates the memory that a task type takes beside its tasks, of which those
// that are claimable stand in so many queues, and these in so many levels together.
func BytesOfType(name string, queues, levels int) int64 {
	return int64(typeBytes + len(name) + queueBytes*max(queues-1, 0) + levelBytes*max(levels-1, 0))
}

// BytesOf estimates the memory that the task takes that is not kept as bytes.
func BytesOf(t *Task) int64 {
	n := taskBytes + len(t.WorkerID) + len(t.Error) + workBytes(t) + bytesOfKey(t) + len(t.Key)
	for i := range t.Log {
		n += attemptBytes + len(t.Log[i].WorkerID) + len(t.Log[i].Error)
	}
	return int64(n + bytesOfOptions(t.Options) + bytesOfThen(t.Then))
}

// HeldBytes estimates the memory that the task takes as it is kept. It depends on the
// saved fields alone, so what is added for a task is exactly what is taken off. An
// Evict goes by it, so another estimate is a matter of the feature level.
func HeldBytes(t *Task) int64 {
	switch {
	case !IsResting(t):
	case t.Status.Ended():
		return int64(endedBytes + restingSize(t) + len(t.WorkerID) + bytesOfThen(t.Then) + bytesOfKey(t))
	default:
		return int64(restingBytes + restingSize(t) + bytesOfKey(t))
	}
	bytes := BytesOf(t)
	if n := len(t.Log); n > 0 && t.Log[n-1].Error == t.Error { // they share it
		bytes -= int64(len(t.Error))
	}
	return bytes
}

// bytesOfKey estimates the memory that the index of keys takes for the task's.
func bytesOfKey(t *Task) int {
	if t.Key == "" {
		return 0
	}
	return keyBytes
}

// bytesOfOptions estimates the memory of a task's options.
func bytesOfOptions(o *Options) int {
	if o == nil {
		return 0
	}
	n := optionsBytes + len(o.Group) + len(o.Traceparent) + bytesOfSteps(o)
	if o.Backoff != nil {
		n += backoffBytes
	}
	for _, l := range o.Labels {
		n += labelBytes + len(l.Name) + len(l.Value)
	}
	return n
}

// bytesOfThen estimates the memory of what is kept for a repeated Complete.
func bytesOfThen(then *Then) int {
	if then == nil {
		return 0
	}
	return thenBytes + claimBytes*(len(then.Submitted)+len(then.Claims))
}

// workBytes is how much the users' own data of the task takes.
func workBytes(t *Task) int {
	return len(t.Params) + len(t.Payload) + len(t.Result) + len(t.ResultPayload) + len(t.Progress)
}

// AnswerBytes is what the task's own bytes add to an answer that holds it, and the
// names of the steps that it depends on: those are in the state once for all
// steps of a parent, but each step shows them.
func AnswerBytes(t *Task) int {
	n := workBytes(t) + QuotedBytes(t.Error)
	if s := t.Step(); s != nil {
		for _, on := range s.Plan.Steps[t.StepPlace()].DependsOn {
			n += len(`"",`) + len(s.Plan.Steps[on].Name)
		}
	}
	return n
}

// Bare takes out what AnswerBytes counts, but the names: those the API leaves out.
func (t *Task) Bare() {
	t.Params, t.Payload, t.Result, t.ResultPayload, t.Progress = nil, nil, nil, nil, nil
	t.Error = ""
}

// QuotedBytes is how long a text is inside a JSON string: control characters
// take up to six bytes there, so 1,000 errors of 16 KiB could take 96 MB.
func QuotedBytes(text string) int {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ':
			n += len(`\u0001`) - 1
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}

// What parents take in memory, beside what every task takes. A step has its place
// in the plan, which it shares, and nothing of its own.
const (
	parentBytes       = 320 // the plan and what is derived of its steps, by themselves
	PlannedStepBytes  = 68
	DependencyBytes   = 4 // of one place in DependsOn and one in dependents
	finalizationBytes = 96
	attemptedBytes    = 56 // of one attempt to claim a finalization
)

// goneBytes is what is remembered of a removed task takes beside its strings.
const goneBytes = 75

// scheduleBytes is what a schedule takes beside its strings and its task's data.
const scheduleBytes = 480
