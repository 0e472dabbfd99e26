package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/jepsen/sim/model"
)

func holdOf(c *model.Command) command.Hold {
	return command.Hold{ID: c.ID, WorkerID: c.Worker, Token: c.Token}
}

// appendCommand appends the command as the log holds it.
func appendCommand(b []byte, c *model.Command) []byte { return command.AppendCommand(b, realOf(c)) }

// realOf returns the command in the machine's words.
func realOf(c *model.Command) command.Command {
	switch c.Verb {
	case model.VerbSubmit:
		return command.Submit{Tasks: realTasks(c.Tasks)}
	case model.VerbClaimNext:
		return realClaimNext(c)
	case model.VerbClaimTask:
		return command.ClaimTask{ID: c.ID, WorkerID: c.Worker, LeaseMS: c.LeaseMS, RequestID: c.Request}
	case model.VerbComplete:
		return realComplete(c)
	case model.VerbFail:
		return command.Fail{Hold: holdOf(c), Error: c.Reason, RetryIn: c.RetryIn, RetryInMS: c.DelayMS, Permanent: c.Permanent}
	case model.VerbExtend:
		return command.Extend{Hold: holdOf(c), LeaseMS: c.LeaseMS, Progress: bytesOf(c.Progress)}
	case model.VerbRelease:
		return command.Release{Hold: holdOf(c), DelayMS: c.DelayMS}
	case model.VerbRetry:
		return command.Retry{ID: c.ID, Token: c.Token, AddAttempts: c.Add}
	case model.VerbDelete:
		return command.Delete{ID: c.ID}
	case model.VerbCancel:
		return command.Cancel{ID: c.ID}
	case model.VerbPatch:
		return realPatch(c)
	case model.VerbBatch:
		b := command.Batch{Atomic: c.Atomic, Ops: make([]command.Command, len(c.Ops))}
		for i, op := range c.Ops {
			b.Ops[i] = realOf(op)
		}
		return b
	case model.VerbExpire:
		e := command.Expire{Items: make([]command.Lease, len(c.Items))}
		for i, l := range c.Items {
			e.Items[i] = command.Lease{TaskID: l.ID, Token: l.Token, Seq: l.Seq}
		}
		return e
	case model.VerbAct, model.VerbSetSchedule, model.VerbDeleteSchedule, model.VerbRunSchedules, model.VerbSetTrail:
		return realSight(c)
	case model.VerbClaimEnd, model.VerbExtendEnd, model.VerbReleaseEnd, model.VerbFinalize:
		return realEnding(c)
	case model.VerbSetType, model.VerbSetDefaults, model.VerbEvict, model.VerbTick, model.VerbCheckpoint, model.VerbSetNode, model.VerbSetLevel, model.VerbTell:
	}
	return realAdmin(c)
}

// realAdmin is real of what concerns no single task.
func realAdmin(c *model.Command) command.Command {
	switch c.Verb {
	case model.VerbSetType:
		return realSetType(c)
	case model.VerbSetDefaults:
		s := realSetType(c)
		return command.SetDefaults{Set: s.Set, Defaults: fsm.DefaultsOf(&s.Settings), By: s.By}
	case model.VerbEvict:
		return command.Evict{Bytes: c.Bytes}
	case model.VerbTick:
		return command.Tick{}
	case model.VerbSetNode:
		return command.SetNode{Node: fsm.NodeRecord{UUID: "uuid-" + c.Node, NodeID: c.Node, PeerAddr: c.Node + ":1", Version: "v1", Level: 1}}
	case model.VerbSetLevel:
		first := realSetType(c).Settings
		return command.SetLevel{Level: c.Level, By: c.By, Defaults: fsm.DefaultsOf(&first)}
	case model.VerbTell:
		kind, _ := event.ParseKind(c.Told)
		return command.Tell{Kind: kind, By: c.By, What: c.What}
	default:
		return command.Checkpoint{}
	}
}

// bytesOf returns the text, nil if it is empty.
func bytesOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

func realTasks(tasks []model.NewTask) []fsm.NewTask {
	made := make([]fsm.NewTask, len(tasks))
	for i, t := range tasks {
		made[i] = fsm.NewTask{
			Type: t.Kind, Priority: t.Priority, MaxAttempts: t.Max, Key: t.Key, LeaseMS: t.LeaseMS, RunAt: t.RunAt, DelayMS: t.DelayMS,
			ExpiresAt: t.ExpiresAt, Backoff: realBackoff(t.Backoff), RetentionMS: t.KeepMS, Labels: realLabels(t.Labels),
			Group: t.Group, UniqueActive: t.Active, KeyOfType: t.OfKind, Parent: realPlan(t.Parent),
		}
		if t.Opaque {
			made[i].Payload = []byte(t.Body)
		} else {
			made[i].Params = bytesOf(t.Body)
		}
	}
	return made
}

func realBackoff(b *model.Backoff) *fsm.Backoff {
	if b == nil {
		return nil
	}
	return &fsm.Backoff{InitialMS: b.Initial, MaxMS: b.Most, Factor: b.Factor, Jitter: b.Jitter}
}

func realLabels(labels []model.Label) []fsm.Label {
	var made []fsm.Label
	for _, l := range labels {
		made = append(made, fsm.Label{Name: l.Name, Value: l.Value})
	}
	return made
}

func realClaimNext(c *model.Command) command.ClaimNext {
	r := command.ClaimNext{
		WorkerID: c.Worker, Types: c.Types, Ascending: c.Ascending,
		Limit: int32(c.Limit), LeaseMS: c.LeaseMS, RequestID: c.Request, MoreAttempts: c.More,
	}
	switch {
	case c.Random:
		r.SortBy = command.SortRandom
	case c.ByCreated:
		r.SortBy = command.SortCreatedAt
	}
	return r
}

func realComplete(c *model.Command) command.Complete {
	r := command.Complete{Hold: holdOf(c)}
	if c.Opaque {
		r.ResultPayload = []byte(c.Result)
	} else {
		r.Result = bytesOf(c.Result)
	}
	if len(c.Tasks) > 0 {
		r.Submit = realTasks(c.Tasks)
	}
	if c.Next != nil {
		next := realClaimNext(c.Next)
		r.Claim = &next
	}
	return r
}

func realPatch(c *model.Command) command.Patch {
	p := command.Patch{ID: c.ID}
	if c.Set.Priority != nil {
		p.SetPriority, p.Priority = true, *c.Set.Priority
	}
	if c.Set.RunAt != nil {
		p.SetRunAt, p.RunAt = true, *c.Set.RunAt
	}
	if c.Set.Labels != nil {
		p.SetLabels, p.Labels = true, realLabels(*c.Set.Labels)
	}
	return p
}

func realSetType(c *model.Command) command.SetType {
	s := c.Settings
	r := command.SetType{Type: c.Kind, By: c.By, Settings: fsm.TypeSettings{
		Paused: s.Paused, MaxClaimed: s.Claims, RateLimit: s.Rate, LeaseMS: s.LeaseMS, LimitSet: s.Limited, MaxAttempts: s.Max,
		Backoff: realBackoff(s.Backoff), RetentionMS: s.KeepMS,
	}}
	for _, f := range []struct {
		is  bool
		bit fsm.TypeFields
	}{
		{c.Changes.Paused, fsm.TypePaused},
		{c.Changes.Claims, fsm.TypeMaxClaimed},
		{c.Changes.Rate, fsm.TypeRateLimit},
		{c.Changes.Lease, fsm.TypeLease},
		{c.Changes.Attempts, fsm.TypeMaxAttempts},
		{c.Changes.Backoff, fsm.TypeBackoff},
		{c.Changes.Keep, fsm.TypeRetention},
	} {
		if f.is {
			r.Set |= f.bit
		}
	}
	return r
}
