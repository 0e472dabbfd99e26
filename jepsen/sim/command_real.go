package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

func (c *command) hold() fsm.Hold { return fsm.Hold{ID: c.id, WorkerID: c.worker, Token: c.token} }

// encode appends the command as the log holds it.
func (c *command) encode(b []byte) []byte { return fsm.AppendCommand(b, c.real()) }

// real returns the command in the machine's words.
func (c *command) real() fsm.Command {
	switch c.verb {
	case verbSubmit:
		return fsm.Submit{Tasks: realTasks(c.tasks)}
	case verbClaimNext:
		return c.realClaimNext()
	case verbClaimTask:
		return fsm.ClaimTask{ID: c.id, WorkerID: c.worker, LeaseMS: c.leaseMS, RequestID: c.request}
	case verbComplete:
		return c.realComplete()
	case verbFail:
		return fsm.Fail{Hold: c.hold(), Error: c.reason, RetryIn: c.retryIn, RetryInMS: c.delayMS, Permanent: c.permanent}
	case verbExtend:
		return fsm.Extend{Hold: c.hold(), LeaseMS: c.leaseMS, Progress: bytesOf(c.progress)}
	case verbRelease:
		return fsm.Release{Hold: c.hold(), DelayMS: c.delayMS}
	case verbRetry:
		return fsm.Retry{ID: c.id, Token: c.token, AddAttempts: c.add}
	case verbDelete:
		return fsm.Delete{ID: c.id}
	case verbCancel:
		return fsm.Cancel{ID: c.id}
	case verbPatch:
		return c.realPatch()
	case verbBatch:
		b := fsm.Batch{Atomic: c.atomic, Ops: make([]fsm.Command, len(c.ops))}
		for i, op := range c.ops {
			b.Ops[i] = op.real()
		}
		return b
	case verbExpire:
		e := fsm.Expire{Items: make([]fsm.Lease, len(c.items))}
		for i, l := range c.items {
			e.Items[i] = fsm.Lease{TaskID: l.id, Token: l.token, Seq: l.seq}
		}
		return e
	case verbAct, verbSetSchedule, verbDeleteSchedule, verbRunSchedules, verbSetTrail:
		return c.realSight()
	case verbClaimEnd, verbExtendEnd, verbReleaseEnd, verbFinalize:
		return c.realEnding()
	case verbSetType, verbSetDefaults, verbEvict, verbTick, verbCheckpoint, verbSetNode, verbSetLevel, verbTell:
	}
	return c.realAdmin()
}

// realAdmin is real of what concerns no single task.
func (c *command) realAdmin() fsm.Command {
	switch c.verb {
	case verbSetType:
		return c.realSetType()
	case verbSetDefaults:
		s := c.realSetType()
		return fsm.SetDefaults{Set: s.Set, Defaults: fsm.DefaultsOf(&s.Settings), By: s.By}
	case verbEvict:
		return fsm.Evict{Bytes: c.bytes}
	case verbTick:
		return fsm.Tick{}
	case verbSetNode:
		return fsm.SetNode{Node: fsm.NodeRecord{UUID: "uuid-" + c.node, NodeID: c.node, PeerAddr: c.node + ":1", Version: "v1", Level: 1}}
	case verbSetLevel:
		return fsm.SetLevel{Level: c.level, By: c.by}
	case verbTell:
		kind, _ := event.ParseKind(c.told)
		return fsm.Tell{Kind: kind, By: c.by, What: c.what}
	default:
		return fsm.Checkpoint{}
	}
}

// bytesOf returns the text, nil if it is empty.
func bytesOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

func realTasks(tasks []newTask) []fsm.NewTask {
	made := make([]fsm.NewTask, len(tasks))
	for i, t := range tasks {
		made[i] = fsm.NewTask{
			Type: t.kind, Priority: t.priority, MaxAttempts: t.max, Key: t.key, LeaseMS: t.leaseMS, RunAt: t.runAt, DelayMS: t.delayMS,
			ExpiresAt: t.expiresAt, Backoff: t.backoff.real(), RetentionMS: t.keepMS, Labels: realLabels(t.labels),
			Group: t.group, UniqueActive: t.active, KeyOfType: t.ofKind, Parent: t.parent.real(),
		}
		if t.opaque {
			made[i].Payload = []byte(t.body)
		} else {
			made[i].Params = bytesOf(t.body)
		}
	}
	return made
}

func (b *backoff) real() *fsm.Backoff {
	if b == nil {
		return nil
	}
	return &fsm.Backoff{InitialMS: b.initial, MaxMS: b.most, Factor: b.factor, Jitter: b.jitter}
}

func realLabels(labels []label) []fsm.Label {
	var made []fsm.Label
	for _, l := range labels {
		made = append(made, fsm.Label{Name: l.name, Value: l.value})
	}
	return made
}

func (c *command) realClaimNext() fsm.ClaimNext {
	r := fsm.ClaimNext{
		WorkerID: c.worker, Types: c.types, Ascending: c.ascending,
		Limit: int32(c.limit), LeaseMS: c.leaseMS, RequestID: c.request, MoreAttempts: c.more,
	}
	switch {
	case c.random:
		r.SortBy = fsm.SortRandom
	case c.byCreated:
		r.SortBy = fsm.SortCreatedAt
	}
	return r
}

func (c *command) realComplete() fsm.Complete {
	r := fsm.Complete{Hold: c.hold()}
	if c.opaque {
		r.ResultPayload = []byte(c.result)
	} else {
		r.Result = bytesOf(c.result)
	}
	if len(c.tasks) > 0 {
		r.Submit = realTasks(c.tasks)
	}
	if c.next != nil {
		next := c.next.realClaimNext()
		r.Claim = &next
	}
	return r
}

func (c *command) realPatch() fsm.Patch {
	p := fsm.Patch{ID: c.id}
	if c.set.priority != nil {
		p.SetPriority, p.Priority = true, *c.set.priority
	}
	if c.set.runAt != nil {
		p.SetRunAt, p.RunAt = true, *c.set.runAt
	}
	if c.set.labels != nil {
		p.SetLabels, p.Labels = true, realLabels(*c.set.labels)
	}
	return p
}

func (c *command) realSetType() fsm.SetType {
	s := c.settings
	r := fsm.SetType{Type: c.kind, By: c.by, Settings: fsm.TypeSettings{
		Paused: s.paused, MaxClaimed: s.claims, RateLimit: s.rate, LeaseMS: s.leaseMS, LimitSet: s.limited, MaxAttempts: s.max,
		Backoff: s.backoff.real(), RetentionMS: s.keepMS,
	}}
	for _, f := range []struct {
		is  bool
		bit fsm.TypeFields
	}{
		{c.changes.paused, fsm.TypePaused},
		{c.changes.claims, fsm.TypeMaxClaimed},
		{c.changes.rate, fsm.TypeRateLimit},
		{c.changes.lease, fsm.TypeLease},
		{c.changes.attempts, fsm.TypeMaxAttempts},
		{c.changes.backoff, fsm.TypeBackoff},
		{c.changes.keep, fsm.TypeRetention},
	} {
		if f.is {
			r.Set |= f.bit
		}
	}
	return r
}
