package fsm

import "github.com/claimq/claimq/fsm/table"

// What a record costs in memory beside its own bytes: the structure, its place
// in a page, and its places in the indexes.
const (
	taskBytes           = 430
	restingBytes        = 70  // of a task that is kept as bytes and waits
	endedBytes          = 135 // the same of one that has ended: it has more times, and is in two indexes
	placeBytes          = 16  // of one place in a page, and of the list of what rests in it
	groupBytes          = 180 // of a group that has tasks which have not ended
	keyBytes            = 18  // of its place in the index
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

// bytesOf estimates the memory that the task takes that is not kept as bytes.
func bytesOf(t *Task) int64 {
	n := taskBytes + len(t.WorkerID) + len(t.Error) + workBytes(t) + bytesOfKey(t) + len(t.Key)
	for i := range t.Log {
		n += attemptBytes + len(t.Log[i].WorkerID) + len(t.Log[i].Error)
	}
	return int64(n + bytesOfOptions(t.Options) + bytesOfThen(t.Then))
}

// heldBytes estimates the memory that the task takes as it is kept. It depends on the
// saved fields alone, so what is added for a task is exactly what is taken off. An
// Evict goes by it, so another estimate is a matter of the feature level.
func heldBytes(t *Task) int64 {
	switch {
	case !isResting(t):
	case t.Status.Ended():
		return int64(endedBytes + restingSize(t) + len(t.WorkerID) + bytesOfThen(t.Then) + bytesOfKey(t))
	default:
		return int64(restingBytes + restingSize(t) + bytesOfKey(t))
	}
	bytes := bytesOf(t)
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

// bytesOfGaps estimates the memory of pages where there is no task: each task is
// charged with its own place in one, and one that is left alone holds a whole page.
// It goes by which ids there are, so it is the same on all nodes.
func bytesOfGaps(tasks *table.Table[Task]) int64 {
	return int64(tasks.Gaps()) * placeBytes
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

// answerBytes is what the task's own bytes add to an answer that holds it, and the
// names of the steps that it depends on: those are in the state once for all
// steps of a parent, but each step shows them.
func answerBytes(t *Task) int {
	n := workBytes(t) + quotedBytes(t.Error)
	if s := t.Step(); s != nil {
		for _, on := range s.Plan.Steps[t.StepPlace()].DependsOn {
			n += len(`"",`) + len(s.Plan.Steps[on].Name)
		}
	}
	return n
}

// bare takes out what answerBytes counts, but the names: those the API leaves out.
func (t *Task) bare() {
	t.Params, t.Payload, t.Result, t.ResultPayload, t.Progress = nil, nil, nil, nil, nil
	t.Error = ""
}

// quotedBytes is how long a text is inside a JSON string: control characters
// take up to six bytes there, so 1,000 errors of 16 KiB could take 96 MB.
func quotedBytes(text string) int {
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

// bytesOfRequest estimates the memory that a claim request takes.
func bytesOfRequest(r *request) int64 {
	if r.Live > 0 {
		return bytesOfLiveRequest(r)
	}
	return int64(restingRequestBytes + len(r.ID) + len(r.WorkerID) + restingClaimBytes*len(r.Claims))
}

// bytesOfLiveRequest is bytesOfRequest of one that has a claim which lives.
func bytesOfLiveRequest(r *request) int64 {
	return int64(requestBytes + len(r.ID) + len(r.WorkerID) + claimBytes*len(r.Claims))
}

// addRemembered adds to the estimates the bytes of a claim request or of what is
// remembered of a removed task.
func (m *derived) addRemembered(bytes int64) {
	m.bytes += bytes
	m.rememberedBytes += bytes
}

// edit returns the task for writing, out of every index that its fields place
// it in. It must be there. Each edit is followed by one call of edited, after
// the last change; in between no other task is looked for or changed.
func (m *Machine) edit(id uint64) *Task {
	t := m.tasks.Edit(id)
	m.changed++
	m.leave(t)
	t.UpdatedAt = m.header.Stamp.T
	return t
}

// edited ends what edit began. If the task is a step that has ended, what follows
// of it for others of its parent is done, too: the task stays as it is.
func (m *Machine) edited(t *Task) {
	m.enter(t)
	m.tasks.Rest(t.ID)
	if len(m.stepsEnded) > 0 && !m.following {
		m.followSteps()
	}
}

// enter puts a task where its fields say it belongs: into the counts, and the
// index of its status. Keys and live claims are looked after by those who give
// them.
func (m *Machine) enter(t *Task) {
	ts := m.typeNamed(t.Type)
	ts.counts[t.Status]++
	m.counts[t.Status]++
	bytes := heldBytes(t)
	m.bytes += bytes
	m.enterTimes(t, bytes)
	if t.Options != nil {
		m.enterSteps(t, t.Options, bytes)
	}
	switch group := groupOf(t); {
	case group != "":
		m.enterGroup(ts, t)
	case t.Status == StatusPending:
		ts.add(t)
	}
	m.arrange(ts, t)
}

// leave undoes enter.
func (m *Machine) leave(t *Task) {
	ts := m.typeNamed(t.Type)
	m.recent = ts
	ts.counts[t.Status]--
	m.counts[t.Status]--
	bytes := heldBytes(t)
	m.bytes -= bytes
	m.leaveTimes(t, bytes)
	if t.Options != nil {
		m.leaveSteps(t, t.Options, bytes)
	}
	switch group := groupOf(t); {
	case group != "":
		m.leaveGroup(ts, t)
	case t.Status == StatusPending:
		ts.remove(t)
	}
}

// arrange lets the rest of the task's group and type follow the change.
// It ends every change of a task: after leave alone, claims do not see the
// state as it is.
func (m *Machine) arrange(ts *typeState, t *Task) {
	if t.Options != nil && t.Options.Group != "" {
		m.follow(ts, t.Options.Group)
	}
	m.place(ts)
}

// typeNamed returns what is kept of the type, nil if nothing is.
func (m *derived) typeNamed(name string) *typeState {
	if ts := m.recent; ts != nil && ts.name == name {
		return ts
	}
	return m.types[name]
}

// typeOf returns what is kept of the type; it begins it.
func (m *Machine) typeOf(name string) *typeState {
	ts := m.typeNamed(name)
	if ts == nil {
		ts = newTypeState(name)
		ts.noted = m.notedGone[name]
		m.types[name] = ts
		m.ready.Add(&ts.Contender)
		m.typesChanged++
		m.byName.Set(name, ts)
	}
	return ts
}

// include adds a task to everything derived but the index of claims. It returns
// the task's type.
func (m *Machine) include(t *Task) *typeState {
	ts := m.typeOf(t.Type)
	t.Type = ts.name // one string for all
	ts.tasks++
	if holdsKey(t) {
		m.keys.Add(t.keyName(), t.ID)
	}
	m.joinParent(t)
	m.enter(t)
	return ts
}

// exclude takes an ended task out of everything derived.
func (m *Machine) exclude(t *Task) {
	m.leave(t)
	ts := m.typeNamed(t.Type)
	ts.tasks--
	m.arrange(ts, t)
	m.quitParent(t)
	m.dropType(ts)
	if holdsKey(t) {
		m.keys.Remove(t.keyName(), t.ID)
	}
}

// endedCode returns why nothing more can happen to an ended task.
func endedCode(s Status) Code {
	switch s {
	case StatusCompleted:
		return CodeTaskCompleted
	case StatusFailed:
		return CodeTaskFailed
	}
	return CodeTaskCancelled
}
