package record

// Estimates of the memory of a record in addition to its variable-length data: the structure, its
// place in a page, and its places in indexes.
const (
	taskBytes           = 430
	restingBytes        = 70   // of a packed task that waits
	endedBytes          = 135  // of a packed task that has ended: more times, and in two indexes
	PlaceBytes          = 16   // of a place in a page and in its list of packed records
	groupBytes          = 180  // of a group with tasks that have not ended
	shareBytes          = 520  // of a share with its first queue
	typeBytes           = 1500 // of a task type with its first queue
	queueBytes          = 300  // of each further queue of a type, with its first level
	levelBytes          = 350  // of each further level of a queue
	keyBytes            = 18   // of a place in the index of keys
	attemptBytes        = 64
	requestBytes        = 240
	requestClaimBytes   = 32
	claimBytes          = 16 // of a follow-up, or a claim with one
	restingRequestBytes = 50 // of a request without a live claim
	restingClaimBytes   = 12
	restingAskedBytes   = 13 // of a claim whose Asked differs from that of the one before
	thenBytes           = 64
	optionsBytes        = 128
	backoffBytes        = 32
	originBytes         = 24
	labelBytes          = 32
	historyBytes        = 2050 // of a history, with the counts of the minute under way
	minuteBytes         = 64   // with the room that a list has behind them
)

// BytesOfType estimates the memory of a task type without its tasks. Its claimable tasks
// are in that many queues, which have that many levels together.
func BytesOfType(name string, queues, levels int) int64 {
	return int64(typeBytes + len(name) + queueBytes*max(queues-1, 0) + levelBytes*(levels-queues))
}

// BytesOfShare estimates the memory of a share without its tasks, as BytesOfType does.
func BytesOfShare(key string, queues, levels int) int64 {
	return int64(shareBytes + len(key) + queueBytes*max(queues-1, 0) + levelBytes*(levels-queues))
}

// BytesOf estimates the memory of an unpacked task.
func BytesOf(t *Task) int64 {
	n := taskBytes + len(t.WorkerID) + len(t.Error) + workBytes(t) + bytesOfKey(t) + len(t.Key)
	for i := range t.Log {
		n += attemptBytes + len(t.Log[i].WorkerID) + len(t.Log[i].Error)
	}
	return int64(n + bytesOfOptions(t.Options) + bytesOfThen(t.Then))
}

// HeldBytes estimates the memory of the stored task. It depends only on saved
// fields, so that exactly what was added for a task is subtracted later. Evict depends on
// it, so changing the estimate requires a new feature level.
func HeldBytes(t *Task) int64 {
	switch {
	case !IsResting(t):
	case t.Status.Ended():
		return int64(endedBytes + restingSize(t) + len(t.WorkerID) + bytesOfThen(t.Then) + bytesOfKey(t))
	default:
		return int64(restingBytes + restingSize(t) + bytesOfKey(t))
	}
	bytes := BytesOf(t)
	if n := len(t.Log); n > 0 && t.Log[n-1].Error == t.Error { // both share the string
		bytes -= int64(len(t.Error))
	}
	return bytes
}

// bytesOfKey estimates the task's share of the index of keys.
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
	n := optionsBytes + o.textBytes() + bytesOfSteps(o)
	if o.Backoff != nil {
		n += backoffBytes
	}
	if o.Origin != nil {
		n += originBytes
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

// workBytes returns the size of the user's own data in the task.
func workBytes(t *Task) int {
	return len(t.Params) + len(t.Payload) + len(t.Result) + len(t.ResultPayload) + len(t.Opts().Progress) + len(t.Opts().Attributes) + len(t.Opts().Signal)
}

// AnswerBytes returns what the task's own data adds to an answer, including the names of
// the steps that it depends on. The state has these once per parent, but an answer repeats
// them in each step.
func AnswerBytes(t *Task) int {
	n := workBytes(t) + QuotedBytes(t.Error)
	if s := t.Step(); s != nil {
		for _, on := range s.Plan.Steps[t.StepPlace()].DependsOn {
			n += len(`"",`) + len(s.Plan.Steps[on].Name)
		}
	}
	return n
}

// DropData removes what AnswerBytes counts, except for the step names: the fields that the API
// leaves out once an answer is full.
func (t *Task) DropData() {
	t.Params, t.Payload, t.Result, t.ResultPayload = nil, nil, nil, nil
	t.Error = ""
	if o := *t.Opts(); o.Attributes != nil || o.Progress != nil || o.Signal != nil {
		o.Attributes, o.Progress, o.Signal = nil, nil, nil
		t.SetOptions(o)
	}
}

// QuotedBytes returns the length of a text inside a JSON string. Control characters take up
// to six bytes there, so 1,000 errors of 16 KiB could take 96 MB.
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

// The memory of parents in addition to that of every task. A step adds its place in the
// shared plan.
const (
	parentBytes       = 320 // the plan and its parentState, without steps
	PlannedStepBytes  = 68
	addedBytes        = 8
	DependencyBytes   = 4 // of one place in DependsOn and in Dependents
	finalizationBytes = 96
	attemptedBytes    = 56 // of one attempt to claim a finalization
)

// goneBytes is the memory of a removed task's record without its strings.
const goneBytes = 75

// scheduleBytes is the memory of a schedule without its strings and its task's data.
const scheduleBytes = 480

// The memory of the steps that a schedule submits, without their names and data.
const (
	newParentBytes = 40
	newStepBytes   = 340
	placeBytes     = 2 // of one place in DependsOn
)
