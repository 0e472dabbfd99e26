package fsm

import "fmt"

// decodeBody decodes the body of a command of kind k. The command shares no
// memory with body.
func decodeBody(k kind, body []byte) (Command, error) {
	r := fieldReader{rest: body}
	var c Command
	switch k {
	case kindSubmit:
		c = decodeSubmit(&r)
	case kindClaimNext:
		c = decodeClaimNext(&r)
	case kindClaimTask:
		c = decodeClaimTask(&r)
	case kindComplete:
		c = decodeComplete(&r)
	case kindFail:
		c = decodeFail(&r)
	case kindExtend:
		c = decodeExtend(&r)
	case kindRelease:
		c = decodeRelease(&r)
	case kindRetry:
		c = decodeRetry(&r)
	case kindDelete:
		c = decodeDelete(&r)
	case kindExpire:
		c = decodeExpire(&r)
	case kindCancel:
		c = decodeCancel(&r)
	case kindPatch:
		c = decodePatch(&r)
	case kindSetType:
		c = decodeSetType(&r)
	case kindEvict:
		c = decodeEvict(&r)
	case kindBatch:
		c = decodeBatch(&r)
	case kindAct:
		c = decodeAct(&r)
	case kindClaimFinalization:
		c = decodeClaimFinalization(&r)
	case kindExtendFinalization:
		c = ExtendFinalization(decodeClaimFinalization(&r))
	case kindReleaseFinalization:
		c = decodeReleaseFinalization(&r)
	case kindFinalize:
		c = decodeFinalize(&r)
	case kindTick:
		c = Tick{}
		r.none()
	case kindCheckpoint:
		c = Checkpoint{}
		r.none()
	case kindSetNode:
		c = decodeSetNode(&r)
	case kindRemoveNode:
		c = decodeRemoveNode(&r)
	case kindSetLevel:
		c = decodeSetLevel(&r)
	case kindSetSchedule:
		c = decodeSetSchedule(&r)
	case kindDeleteSchedule:
		c = decodeDeleteSchedule(&r)
	case kindRunSchedules:
		c = decodeRunSchedules(&r)
	case kindSetTrail:
		c = decodeSetTrail(&r)
	case kindTell:
		c = decodeTell(&r)
	case kindSetJoinToken:
		c = decodeSetJoinToken(&r)
	case kindDeleteJoinToken:
		c = decodeDeleteJoinToken(&r)
	case kindUseJoinToken:
		c = decodeUseJoinToken(&r)
	case kindRestoreBegin:
		c = decodeRestoreBegin(&r)
	case kindRestoreChunk:
		c = decodeRestoreChunk(&r)
	case kindRestoreEnd:
		c = decodeRestoreEnd(&r)
	default:
		return nil, fmt.Errorf("%w: type %d", ErrUnknownCommand, k)
	}
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w", k, r.err)
	}
	return c, nil
}

func decodeSubmit(r *fieldReader) (c Submit) {
	for r.next() {
		switch r.num {
		case 1:
			c.Tasks = r.newTask(c.Tasks)
		default:
			r.unknown()
		}
	}
	return c
}

// newTask reads the field, one element of repeated NewTask, and appends it.
func (r *fieldReader) newTask(tasks []NewTask) []NewTask {
	if tasks == nil {
		tasks = r.scratch.newTasks(r.run())
	}
	in := fieldReader{rest: r.raw(), scratch: r.scratch}
	tasks = append(tasks, decodeNewTask(&in))
	r.within(in.err)
	return tasks
}

func decodeNewTask(r *fieldReader) (t NewTask) {
	for r.next() {
		switch r.num {
		case 1:
			t.Type = r.name()
		case 2:
			t.Params = r.bytes()
		case 3:
			t.Payload = r.bytes()
		case 4:
			t.Priority = r.sint32()
		case 5:
			t.MaxAttempts = r.sint32()
		case 6:
			t.Key = r.string()
		case 7:
			t.LeaseMS = r.int64()
		default:
			decodeNewTaskRest(r, &t)
		}
	}
	return t
}

// decodeNewTaskRest reads the field, one of the rarer ones.
func decodeNewTaskRest(r *fieldReader, t *NewTask) {
	switch r.num {
	case 8:
		t.RunAt = r.int64()
	case 9:
		t.DelayMS = r.int64()
	case 10:
		t.ExpiresAt = r.int64()
	case 11:
		t.Backoff = r.backoff()
	case 12:
		t.RetentionMS = r.sint64()
	case 13:
		t.Labels = r.label(t.Labels)
	case 14:
		t.Group = r.string()
	case 15:
		t.UniqueActive = r.bool()
	case 16:
		t.Traceparent = r.string()
	case 17:
		if r.plain {
			r.unknown()
			return
		}
		t.Parent = r.newParent()
	case 18:
		t.KeyOfType = r.bool()
	default:
		r.unknown()
	}
}

// backoff reads the field, a message Backoff.
func (r *fieldReader) backoff() *Backoff {
	in := fieldReader{rest: r.single()}
	v := &Backoff{}
	for in.next() {
		switch in.num {
		case 1:
			v.InitialMS = in.int64()
		case 2:
			v.MaxMS = in.int64()
		case 3:
			v.Factor = in.int64()
		case 4:
			v.Jitter = in.int64()
		default:
			in.unknown()
		}
	}
	r.within(in.err)
	return v
}

// label reads the field, one element of repeated Label, and appends it.
func (r *fieldReader) label(labels []Label) []Label {
	if labels == nil {
		labels = make([]Label, 0, r.run())
	}
	in := fieldReader{rest: r.raw()}
	var l Label
	for in.next() {
		switch in.num {
		case 1:
			l.Name = in.string()
		case 2:
			l.Value = in.string()
		default:
			in.unknown()
		}
	}
	r.within(in.err)
	return append(labels, l)
}

func decodeClaimNext(r *fieldReader) (c ClaimNext) {
	for r.next() {
		switch r.num {
		case 1:
			c.WorkerID = r.name()
		case 2:
			c.Types = r.types()
		case 3:
			c.SortBy = SortBy(r.enum(uint64(SortRandom)))
		case 4:
			c.Ascending = r.bool()
		case 5:
			c.Limit = r.int32()
		case 6:
			c.LeaseMS = r.int64()
		case 7:
			c.RequestID = r.string()
		case 8:
			c.MoreAttempts = r.int32()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeClaimTask(r *fieldReader) (c ClaimTask) {
	for r.next() {
		switch r.num {
		case 1:
			c.ID = r.id()
		case 2:
			c.WorkerID = r.string()
		case 3:
			c.LeaseMS = r.int64()
		case 4:
			c.RequestID = r.string()
		default:
			r.unknown()
		}
	}
	return c
}

// hold reads the field into h if it is one of Hold's, and reports whether it is.
func (r *fieldReader) hold(h *Hold) bool {
	switch r.num {
	case 1:
		h.ID = r.id()
	case 2:
		h.WorkerID = r.name()
	case 3:
		h.Token = r.id()
	default:
		return false
	}
	return true
}

func decodeComplete(r *fieldReader) (c Complete) {
	for r.next() {
		switch {
		case r.hold(&c.Hold):
		case r.num == 4:
			c.Result = r.bytes()
		case r.num == 5:
			c.ResultPayload = r.bytes()
		case r.num == 6:
			c.Submit = r.newTask(c.Submit)
		case r.num == 7:
			in := fieldReader{rest: r.single(), scratch: r.scratch}
			c.Claim = r.scratch.newClaim()
			*c.Claim = decodeClaimNext(&in)
			r.within(in.err)
		default:
			r.unknown()
		}
	}
	return c
}

func decodeFail(r *fieldReader) (c Fail) {
	for r.next() {
		switch {
		case r.hold(&c.Hold):
		case r.num == 4:
			c.Error = r.string()
		case r.num == 5:
			c.RetryIn = r.bool()
		case r.num == 6:
			c.RetryInMS = r.int64()
		case r.num == 7:
			c.Permanent = r.bool()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeExtend(r *fieldReader) (c Extend) {
	for r.next() {
		switch {
		case r.hold(&c.Hold):
		case r.num == 4:
			c.LeaseMS = r.int64()
		case r.num == 5:
			c.Progress = r.bytes()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeRelease(r *fieldReader) (c Release) {
	for r.next() {
		switch {
		case r.hold(&c.Hold):
		case r.num == 4:
			c.DelayMS = r.int64()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeRetry(r *fieldReader) (c Retry) {
	for r.next() {
		switch r.num {
		case 1:
			c.ID = r.id()
		case 2:
			c.Token = r.id()
		case 3:
			c.AddAttempts = r.int32()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeDelete(r *fieldReader) (c Delete) {
	for r.next() {
		switch r.num {
		case 1:
			c.ID = r.id()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeExpire(r *fieldReader) (c Expire) {
	for r.next() {
		switch r.num {
		case 1:
			if c.Items == nil {
				c.Items = make([]Lease, 0, r.run())
			}
			in := fieldReader{rest: r.raw()}
			c.Items = append(c.Items, decodeExpired(&in))
			r.within(in.err)
		default:
			r.unknown()
		}
	}
	return c
}

func decodeExpired(r *fieldReader) (l Lease) {
	for r.next() {
		switch r.num {
		case 1:
			l.TaskID = r.id()
		case 2:
			l.Token = r.id()
		case 3:
			l.Seq = r.uint32()
		default:
			r.unknown()
		}
	}
	return l
}

func decodeCancel(r *fieldReader) (c Cancel) {
	for r.next() {
		switch r.num {
		case 1:
			c.ID = r.id()
		default:
			r.unknown()
		}
	}
	return c
}

func decodePatch(r *fieldReader) (c Patch) {
	for r.next() {
		switch r.num {
		case 1:
			c.ID = r.id()
		case 2:
			c.SetPriority = r.bool()
		case 3:
			c.Priority = r.sint32()
		case 4:
			c.SetRunAt = r.bool()
		case 5:
			c.RunAt = r.int64()
		case 6:
			c.SetLabels = r.bool()
		case 7:
			c.Labels = r.label(c.Labels)
		default:
			r.unknown()
		}
	}
	return c
}

func decodeSetType(r *fieldReader) (c SetType) {
	for r.next() {
		switch r.num {
		case 1:
			c.Type = r.string()
		case 2:
			c.Set = TypeFields(r.uint32())
			if c.Set&^typeFieldsAll != 0 && r.err == nil {
				r.err = fmt.Errorf("%w: setting of a type in %b", ErrUnknownCommand, c.Set)
			}
		case 3:
			in := fieldReader{rest: r.single()}
			c.Settings = decodeTypeSettings(&in)
			r.within(in.err)
		case 4:
			c.By = r.string()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeTypeSettings(r *fieldReader) (s TypeSettings) {
	for r.next() {
		switch r.num {
		case 1:
			s.Paused = r.bool()
		case 2:
			s.MaxClaimed = r.int32()
		case 3:
			s.RateLimit = r.int64()
		case 4:
			s.LeaseMS = r.int64()
		case 5:
			s.LimitSet = r.bool()
		case 6:
			s.MaxAttempts = r.int32()
		case 7:
			s.Backoff = r.backoff()
		case 8:
			s.RetentionMS = r.sint64()
		default:
			r.unknown()
		}
	}
	return s
}

func decodeEvict(r *fieldReader) (c Evict) {
	for r.next() {
		switch r.num {
		case 1:
			c.Bytes = r.int64()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeBatch(r *fieldReader) (c Batch) {
	for r.next() {
		switch r.num {
		case 1:
			c.Atomic = r.bool()
		case 2:
			if c.Ops == nil {
				c.Ops = make([]Command, 0, r.run())
			}
			op, err := decodeOp(r.raw())
			r.within(err)
			c.Ops = append(c.Ops, op)
		default:
			r.unknown()
		}
	}
	return c
}

// decodeOp decodes one op of a batch: its kind, then its body. A batch holds
// no batch, so no command is deeper than an op's own messages.
func decodeOp(b []byte) (Command, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: an op without a kind", ErrCorrupt)
	}
	k := kind(b[0])
	if !k.isOp() {
		return nil, fmt.Errorf("%w: %s in a batch", ErrUnknownCommand, k)
	}
	c, err := decodeBody(k, b[1:])
	switch {
	case err != nil:
		return nil, err
	case !isOp(c):
		return nil, fmt.Errorf("%w: %s of not one task in a batch", ErrCorrupt, k)
	}
	return c, nil
}

func decodeSetNode(r *fieldReader) (c SetNode) {
	for r.next() {
		switch r.num {
		case 1:
			in := fieldReader{rest: r.single()}
			c.Node = decodeNodeRecord(&in)
			r.within(in.err)
		default:
			r.unknown()
		}
	}
	return c
}

func decodeNodeRecord(r *fieldReader) (n NodeRecord) {
	for r.next() {
		switch r.num {
		case 1:
			n.UUID = r.string()
		case 2:
			n.NodeID = r.string()
		case 3:
			n.PeerAddr = r.string()
		case 4:
			n.HTTPAddr = r.string()
		case 5:
			n.Version = r.string()
		case 6:
			n.Level = r.uint32()
		case 7:
			n.Nonvoter = r.bool()
		default:
			r.unknown()
		}
	}
	return n
}

func decodeRemoveNode(r *fieldReader) (c RemoveNode) {
	for r.next() {
		switch r.num {
		case 1:
			c.UUID = r.string()
		default:
			r.unknown()
		}
	}
	return c
}

// decodeSetLevel refuses a level that this version does not know: from there on
// the log may hold what it cannot apply.
func decodeSetLevel(r *fieldReader) (c SetLevel) {
	for r.next() {
		switch r.num {
		case 1:
			c.Level = r.uint32()
			if c.Level > FeatureLevel && r.err == nil {
				r.err = fmt.Errorf("%w: feature level %d, this one knows %d", ErrUnknownCommand, c.Level, FeatureLevel)
			}
		case 2:
			c.By = r.string()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeTell(r *fieldReader) (c Tell) {
	for r.next() {
		switch r.num {
		case 1:
			c.Kind = EventKind(r.enum(uint64(eventLast)))
		case 2:
			c.By = r.string()
		case 3:
			c.What = r.string()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeSetJoinToken(r *fieldReader) (c SetJoinToken) {
	for r.next() {
		switch r.num {
		case 1:
			c.Hash = r.bytes()
		case 2:
			c.LifeMS = r.int64()
		case 3:
			c.Uses = r.sint32()
		case 4:
			c.By = r.string()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeDeleteJoinToken(r *fieldReader) (c DeleteJoinToken) {
	for r.next() {
		switch r.num {
		case 1:
			c.ID = r.string()
		case 2:
			c.By = r.string()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeUseJoinToken(r *fieldReader) (c UseJoinToken) {
	for r.next() {
		switch r.num {
		case 1:
			c.Hash = r.bytes()
		case 2:
			c.UUID = r.string()
		case 3:
			c.NodeID = r.string()
		default:
			r.unknown()
		}
	}
	return c
}
