package fsm

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// schema holds the declarations of fsm.proto.
type schema struct {
	messages map[string]*schemaMessage
	enums    map[string]map[string]int // name to value
}

type schemaMessage struct {
	number int // from "Type N." or "Kind N." above it, or -1
	fields map[protowire.Number]schemaField
}

type schemaField struct {
	name, typ string
	packed    bool // many in one value, which nothing is that we write
}

var (
	numberLine  = regexp.MustCompile(`^// (?:Type|Kind) (\d+)\b`)
	messageLine = regexp.MustCompile(`^message (\w+) \{(\})?$`)
	enumLine    = regexp.MustCompile(`^enum (\w+) \{$`)
	fieldLine   = regexp.MustCompile(`^(repeated )?(\w+) (\w+) = (\d+)( \[packed = false\])?;`)
	valueLine   = regexp.MustCompile(`^(\w+) = (\d+);`)
)

// parseSchema reads as much of the proto3 language as fsm.proto uses, and
// refuses the rest.
func parseSchema(t *testing.T) schema {
	t.Helper()
	file, err := os.ReadFile("fsm.proto")
	if err != nil {
		t.Fatal(err)
	}
	s := schema{messages: map[string]*schemaMessage{}, enums: map[string]map[string]int{}}
	var message *schemaMessage
	var enum map[string]int
	number := -1
	for i, line := range strings.Split(string(file), "\n") {
		line = strings.TrimSpace(line)
		comment := numberLine.FindStringSubmatch(line)
		switch m, e, f, v := messageLine.FindStringSubmatch(line), enumLine.FindStringSubmatch(line),
			fieldLine.FindStringSubmatch(line), valueLine.FindStringSubmatch(line); {
		case comment != nil:
			number = atoi(t, comment[1])
		case m != nil:
			message = &schemaMessage{number: number, fields: map[protowire.Number]schemaField{}}
			number = -1
			s.messages[m[1]] = message
			if m[2] != "" {
				message = nil
			}
		case e != nil:
			enum = map[string]int{}
			s.enums[e[1]] = enum
		case line == "}":
			message, enum = nil, nil
		case message != nil && f != nil:
			num := protowire.Number(atoi(t, f[4]))
			if _, ok := message.fields[num]; ok {
				t.Fatalf("fsm.proto:%d: field number %d again", i+1, num)
			}
			message.fields[num] = schemaField{name: f[3], typ: f[2], packed: f[1] != "" && f[5] == ""}
		case enum != nil && v != nil:
			enum[v[1]] = atoi(t, v[2])
		case message == nil && enum == nil && (line == "" || strings.HasPrefix(line, "//") ||
			strings.HasPrefix(line, "syntax ") || strings.HasPrefix(line, "package ")):
		default:
			t.Fatalf("fsm.proto:%d: unexpected %q", i+1, line)
		}
	}
	return s
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// walk checks each field of an encoded message against the schema, and notes
// the ones that it meets in seen.
func (s schema) walk(name string, b []byte, seen map[string]bool) error {
	message, ok := s.messages[name]
	if !ok {
		return fmt.Errorf("message %s is not in fsm.proto", name)
	}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%s: %w", name, protowire.ParseError(n))
		}
		b = b[n:]
		field, ok := message.fields[num]
		if !ok {
			return fmt.Errorf("%s: field %d is not in fsm.proto", name, num)
		}
		n = protowire.ConsumeFieldValue(num, typ, b)
		if n < 0 {
			return fmt.Errorf("%s.%s: %w", name, field.name, protowire.ParseError(n))
		}
		if err := s.value(field, typ, b[:n], seen); err != nil {
			return fmt.Errorf("%s.%s: %w", name, field.name, err)
		}
		seen[fmt.Sprintf("%s.%d", name, num)] = true
		b = b[n:]
	}
	return nil
}

// value checks one encoded value against its field.
func (s schema) value(field schemaField, typ protowire.Type, b []byte, seen map[string]bool) error {
	if typ == protowire.BytesType {
		inner, _ := protowire.ConsumeBytes(b)
		if field.typ == "string" || field.typ == "bytes" {
			return nil
		}
		return s.walk(field.typ, inner, seen)
	}
	v, _ := protowire.ConsumeVarint(b)
	limits := map[string]uint64{
		"bool": 1, "uint32": math.MaxUint32, "sint32": math.MaxUint32, "uint64": math.MaxUint64,
		"int32": math.MaxUint64, "int64": math.MaxUint64, "sint64": math.MaxUint64,
	}
	limit, ok := limits[field.typ]
	if values := s.enums[field.typ]; values != nil {
		limit, ok = uint64(len(values)-1), true
	}
	if !ok || typ != protowire.VarintType || v > limit || field.packed {
		return fmt.Errorf("wire type %d with value %d is no %s", typ, v, field.typ)
	}
	return nil
}

// Records with every field set.
var (
	fullHeader = record.Header{
		Index: 1000, Ahead: 70_000, Stamp: fullStamp, Level: 1, NextID: 1 << 52, NextToken: 77, NextRequest: 9,
		Chain:      math.MaxUint64,
		PageSecret: tokenHash("page"),
		Defaults:   fullDefaults().Defaults,
		JoinTokens: []*record.JoinToken{{Hash: tokenHash("one"), CreatedAt: 1_780_000_000_000, ExpiresAt: 1_780_003_600_000, Uses: 2, UsedBy: []string{fullNode.UUID}}},
	}
	fullTrailHeader = event.Header{
		Bounds: event.Bounds{Bytes: 64 << 20, AgeMS: 86_400_000}, Newest: event.Pos{Index: 1000, Sub: math.MaxUint32},
		Gone: event.Pos{Index: 500, Sub: 1}, End: math.MaxUint64,
	}
	fullCounts = record.Counts{Tasks: 1, Requests: 2, Nodes: 3, Types: 4, Gone: 5, Trail: 6, Schedules: 7, Turns: 8, Shares: 10, Histories: 9}
	fullThen   = record.Then{
		Submitted: []record.FollowUp{{ID: 1<<53 - 3, Created: true, Replaced: true}, {ID: 1, Created: true, Replaced: true}},
		Claims:    []record.ClaimRef{{TaskID: 2, Token: 78}, {TaskID: 3, Token: 79}},
	}
	fullBackoff = record.Backoff{InitialMS: 1000, MaxMS: 86_400_000, Factor: 2_000_000, Jitter: 200_000}
	fullTask    = record.Task{
		ID: 1<<53 - 1, Type: "mail", Params: []byte(`{"to":"ann"}`), Payload: []byte{0, 255}, Priority: math.MinInt32,
		MaxAttempts: 3, Attempts: 2, Key: "order-17", LeaseMS: 60_000, Status: record.StatusClaimed, WorkerID: "worker-1",
		Token: 76, LeaseSeq: 4, ClaimLeaseMS: 30_000, LeaseEndU: 86_430_001, ClaimedAt: 1_780_000_000_001,
		CreatedAt: 1_780_000_000_000, UpdatedAt: 1_780_000_000_002, CompletedAt: 1_780_000_000_003,
		Result: []byte(`"done"`), ResultPayload: []byte{1}, Error: "mailbox full",
		Log: []record.Attempt{
			{WorkerID: "worker-2", Token: 75, ClaimedAt: 3, EndedAt: 4, Outcome: record.OutcomeCancelled, Error: "mailbox full"},
			{WorkerID: "worker-1", Token: 76, ClaimedAt: 1_780_000_000_001, EndedAt: 1, Outcome: record.OutcomeCompleted, Error: "e"},
		},
		RunAt: 1_780_000_000_004, RemoveAt: 1_780_086_400_003, CancelRequested: true,
		Options: &record.Options{
			ExpiresAt: 1_780_000_000_005, ExpiresAgain: true, Backoff: &fullBackoff, RetentionMS: record.KeepNone,
			Labels: []record.Label{{Name: "customer", Value: "ann"}, {Name: "region", Value: "eu"}}, Group: "ann", UniqueActive: true, UniqueMS: 300_000, KeyOfType: true,
			Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Attributes: []byte(`{"a":1}`), ShareKey: "ann", SignalMS: 86_400_000, SignalUntil: 1_780_000_000_006, Signalled: true, Signal: []byte(`{"approved":true}`),
			Origin: &record.Source{Type: "mail", ID: 1<<53 - 1}, Progress: []byte(`{"done":7}`),
			Parent: fullParent(), Step: &record.Step{ParentID: 1<<53 - 2}, // no task is both
		},
		Then: &fullThen,
	}
	fullRequest = record.Request{
		ID: "request-1", Live: 2, ForgetU: 600_000, Claims: []record.RequestClaim{
			{ClaimRef: record.ClaimRef{TaskID: 1, Token: 2}, Asked: math.MaxUint64, Place: 999},
			{ClaimRef: record.ClaimRef{TaskID: 300, Token: 301}, Asked: math.MaxUint64, Place: 999},
		},
	}
	fullNode = record.NodeRecord{
		UUID: "0196e0a2-7c1e-7d5c-9b1e-0d3b5a7f1c11", NodeID: "n1", PeerAddr: "127.0.0.1:7401",
		HTTPAddr: "http://127.0.0.1:7400", Version: "1.0.0", Level: 1, Nonvoter: true,
	}
	fullType = record.TaskType{
		Name: "mail", Bucket: 2_500_000_000, BucketT: 1_780_000_000_000,
		Settings: record.TypeSettings{
			Paused: true, MaxClaimed: 10, RateLimit: 2_500_000, LeaseMS: 100, LimitSet: true, MaxAttempts: 5,
			Backoff: &fullBackoff, RetentionMS: record.KeepForever, Queue: "1 2", DelayMS: 60_000,
			DeadLetter: "dead", DeadLetterAfter: 3, MaxClaimedPerKey: 2, Fair: true, RateLimitPerKey: 1_500_000,
		},
		Move: &record.Move{
			Number: math.MaxUint64, To: "mail", Rate: 500, Until: 1<<53 - 1, ToMove: 300, Moved: 200, StartedAt: 1_780_000_000_000, NextAt: 1_780_000_001_000,
			Status: record.MoveFailed, Failure: record.MoveNoType,
		},
	}
	fullGone = record.Gone{
		Key: "order-17", KeyOfType: true, KeyUntil: 1_780_000_300_000, Type: "mail", Status: record.StatusCompleted, WorkerID: "worker-1", Token: 76, Outcome: record.OutcomeCompleted,
		Same: math.MaxUint64, Then: &fullThen, ForgetU: 600_000,
	}
	fullTurn  = record.Turn{Type: "mail", ShareKey: "ann", Priority: math.MinInt32, Clock: true, Value: math.MaxUint64}
	fullShare = record.Share{
		Type: "mail", Key: "ann", Spent: 1_000_000_000, SpentT: 1_780_000_000_000,
		Settings: record.ShareSettings{Paused: true, MaxClaimed: 3, Weight: 10_000, RateLimit: 2_500_000},
	}
	fullTrail = event.Saved{
		Start: math.MaxUint64 - event.ChunkBytes, Events: []byte{0, 255},
		Base: event.Base{Pos: event.Pos{Index: 501, Sub: math.MaxUint32}, T: 1_780_000_000_000, Task: 1<<53 - 1, Token: 1<<53 - 2},
	}
	fullSchedule = record.ScheduleView{
		Schedule: zonesCommands()[0].(command.SetSchedule).Schedule, Version: math.MaxUint64, LastTaskID: 1<<53 - 1,
		LastRunAt: 1_780_000_000_001, Skipped: math.MaxUint64, CreatedAt: 1_780_000_000_002, UpdatedAt: 1_780_000_000_003,
	}
	fullHistory = record.History{
		Type: "mail", Since: 29_000_000, Open: record.Minute{At: 29_000_002, Submitted: 1, Completed: 2, Failed: 3},
		Minutes: []record.Minute{{
			At: 29_000_001, Submitted: math.MaxUint32, Completed: 1, Failed: 2, Pending: math.MaxUint32, Claimed: 3, OldestAt: 1_740_000_060_000,
			Times: [record.HistorySpans]record.Quantiles{{P50: 1, P99: 120}, {P50: 2, P99: 3}},
		}},
		Times: [record.HistorySpans][record.HistoryBuckets]uint64{{1, 0, 3}, {119: math.MaxUint64}},
	}
	fullHash = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)

// fullRecords returns the full records as the snapshot has them, by kind.
func fullRecords() map[record.Kind][]byte {
	return map[record.Kind][]byte{
		record.KindHeader:   record.AppendHeader(nil, &fullHeader, &fullTrailHeader, fullCounts),
		record.KindTask:     record.AppendTask(nil, &fullTask),
		record.KindRequest:  record.AppendRequest(nil, 8, &fullRequest),
		record.KindNode:     record.AppendNode(nil, fullNode),
		record.KindType:     record.AppendType(nil, &fullType),
		record.KindGone:     record.AppendGone(nil, 1<<53-1, &fullGone),
		record.KindTrail:    event.AppendRecord(nil, &fullTrail),
		record.KindSchedule: record.AppendSchedule(nil, &fullSchedule),
		record.KindTurn:     record.AppendTurn(nil, 1<<53-1, &fullTurn),
		record.KindShare:    record.AppendShare(nil, 1<<53-1, &fullShare),
		record.KindHistory:  record.AppendHistory(nil, &fullHistory),
		record.KindEnd:      record.AppendEnd(nil, fullCounts, fullHash),
	}
}

var recordNames = map[record.Kind]string{
	record.KindHeader: "HeaderRecord", record.KindTask: "TaskRecord", record.KindRequest: "RequestRecord",
	record.KindNode: "NodeRecord", record.KindType: "TypeRecord", record.KindGone: "GoneRecord", record.KindTrail: "TrailRecord", record.KindSchedule: "ScheduleRecord", record.KindTurn: "TurnRecord", record.KindShare: "ShareRecord", record.KindHistory: "HistoryRecord", record.KindEnd: "EndRecord",
}

// The part of fsm.proto that is about commands begins and ends with these lines.
const (
	protoCommands = "// has it. This part is made of the comments in package command.\n\n"
	protoShared   = "// ---- What commands and records share.\n"
)

// The commands in fsm.proto equal the comments above their codecs; -update writes them.
func TestProto_SaysWhatTheCodecsSay(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("fsm.proto")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(file), protoCommands)
	_, rest, ends := strings.Cut(rest, protoShared)
	if !begins || !ends {
		t.Fatal("fsm.proto has no part about commands")
	}
	messages := codecMessages(t)
	var commands strings.Builder
	for _, c := range fullCommands() {
		k := command.KindOf(c)
		messages[k.String()] = fmt.Sprintf("// Type %d, from level %d.\n%s\n", k, k.Row().Level, messages[reflect.TypeOf(c).Name()])
	}
	for _, k := range knownKinds() {
		commands.WriteString(messages[k.String()])
	}
	want := head + protoCommands + commands.String() + protoShared + rest
	if want == string(file) {
		return
	}
	if !*update {
		t.Fatal("fsm.proto does not say what the comments of package command say: go test ./fsm -run Proto -update")
	}
	if err := os.WriteFile("fsm.proto", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// codecMessages returns the messages above the codecs in package command, by the command's
// type.
func codecMessages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("command/*.go")
	if err != nil {
		t.Fatal(err)
	}
	messages := map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if codec, ok := d.(*ast.FuncDecl); ok && codec.Name.Name == "code" {
				_, message, _ := strings.Cut(codec.Doc.Text(), "\n\n\t")
				messages[codec.Recv.List[0].Type.(*ast.Ident).Name] = strings.ReplaceAll(message, "\n\t", "\n")
			}
		}
	}
	return messages
}

// bodyOf returns the body of the command as an entry has it.
func bodyOf(c command.Command) []byte {
	b := command.AppendCommand(nil, c)
	_, n := record.Varint(b[1:])
	return b[1+n:]
}

// Every field that is written is in fsm.proto with its number and type, and
// every field of fsm.proto is written.
func TestProto_IsWhatIsWritten(t *testing.T) {
	t.Parallel()
	s := parseSchema(t)
	seen, numbers := map[string]bool{}, map[string]int{}
	for _, c := range fullCommands() {
		name := reflect.TypeOf(c).Name()
		numbers[name] = int(command.KindOf(c))
		if err := s.walk(name, bodyOf(c), seen); err != nil {
			t.Error(err)
		}
	}
	for kind, packed := range fullRecords() {
		numbers[recordNames[kind]] = int(kind)
		if err := s.walk(recordNames[kind], packed, seen); err != nil {
			t.Error(err)
		}
	}
	for name, message := range s.messages {
		want, ok := numbers[name]
		if !ok {
			want = -1
		}
		if message.number != want {
			t.Errorf("fsm.proto numbers message %s %d, want %d", name, message.number, want)
		}
		for num, field := range message.fields {
			if !seen[fmt.Sprintf("%s.%d", name, num)] {
				t.Errorf("%s.%s = %d of fsm.proto is never written", name, field.name, num)
			}
		}
	}
}

func TestProto_EnumsAreTheConstants(t *testing.T) {
	t.Parallel()
	s := parseSchema(t)
	want := map[string]map[string]int{
		"SortBy":  {"SORT_BY_PRIORITY": int(command.SortPriority), "SORT_BY_CREATED_AT": int(command.SortCreatedAt), "SORT_BY_RANDOM": int(command.SortRandom)},
		"Status":  {"STATUS_NONE": 0},
		"Outcome": {"OUTCOME_NONE": 0},
		"Action": {
			"ACTION_NONE": 0, "ACTION_RETRY": int(command.ActionRetry), "ACTION_CANCEL": int(command.ActionCancel), "ACTION_DELETE": int(command.ActionDelete),
		},
		"MoveStatus": {
			"MOVE_NONE": 0, "MOVE_RUNNING": int(record.MoveRunning), "MOVE_COMPLETED": int(record.MoveCompleted), "MOVE_FAILED": int(record.MoveFailed), "MOVE_CANCELLED": int(record.MoveCancelled),
		},
		"MoveFailure": {
			"MOVE_FAILURE_NONE": 0, "MOVE_NO_ORIGIN": int(record.MoveNoOrigin), "MOVE_NO_TYPE": int(record.MoveNoType), "MOVE_OF_STEP": int(record.MoveOfStep),
		},
	}
	for i := record.StatusPending; i.String() != ""; i++ {
		want["Status"]["STATUS_"+strings.ToUpper(i.String())] = int(i)
	}
	for i := record.OutcomeCompleted; i.String() != ""; i++ {
		want["Outcome"]["OUTCOME_"+strings.ToUpper(i.String())] = int(i)
	}
	if diff := cmp.Diff(want, s.enums); diff != "" {
		t.Errorf("(-constants +fsm.proto):\n%s", diff)
	}
}

// The values that stand for all values must have every field set, so that a
// field that is added cannot be left out of the formats.
func TestFullValues_HaveNoZeroField(t *testing.T) {
	t.Parallel()
	values := []any{fullStamp, fullHeader, fullTrailHeader, fullCounts, fullTask, fullRequest, fullNode, fullType, fullGone, fullTrail, fullSchedule, fullShare, fullHistory, fullHash}
	kindsSeen := map[command.Kind]bool{}
	for _, c := range fullCommands() {
		values = append(values, c)
		kindsSeen[command.KindOf(c)] = true
	}
	for _, v := range values {
		noZero(t, reflect.TypeOf(v).Name(), reflect.ValueOf(v))
	}
	for _, k := range knownKinds() {
		if !kindsSeen[k] {
			t.Errorf("fullCommands has no %v", k)
		}
	}
}

// mayBeZero are the fields that not every value has.
var mayBeZero = []string{
	"Expire.Items.EndU", // not part of the command
	".Task.Parent",      // steps and tasks of schedules have no steps
	".Step.Plan",        // the parent's, known when all records are read
	".Steps.DependsOn",  // of a step that is among the first
	".NewStep.DependsOn",
	// The minute under way has no end.
	"History.Open.Times", "History.Open.Pending", "History.Open.Claimed", "History.Open.OldestAt",
}

func noZero(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			field := path + "." + v.Type().Field(i).Name
			if slices.ContainsFunc(mayBeZero, func(suffix string) bool { return strings.HasSuffix(field, suffix) }) {
				continue
			}
			noZero(t, field, v.Field(i))
		}
	case v.IsZero():
		t.Errorf("%s is zero", path)
	case v.Kind() == reflect.Pointer:
		noZero(t, path, v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			noZero(t, path, v.Index(i))
		}
	}
}

func TestRecords_RoundTrip(t *testing.T) {
	t.Parallel()
	records, names := fullRecords(), &record.Names{}
	check := func(kind record.Kind, want any, decode func(*record.Fields) any) {
		t.Helper()
		r := record.From(records[kind], names)
		got := decode(&r)
		if r.Err != nil {
			t.Errorf("%v: %v", kind, r.Err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(record.Counts{}, event.Saved{}, event.Base{}, record.Plan{}, record.PlannedStep{})); diff != "" {
			t.Errorf("%v (-encoded +decoded):\n%s", kind, diff)
		}
	}
	check(record.KindHeader, []any{fullHeader, fullTrailHeader, fullCounts}, func(r *record.Fields) any {
		var of event.Header
		h, n := record.ReadHeader(r, &of)
		return []any{h, of, n}
	})
	check(record.KindTask, &fullTask, func(r *record.Fields) any {
		t := &record.Task{}
		record.ReadTask(r, t)
		return t
	})
	check(record.KindRequest, []any{uint64(8), &fullRequest}, func(r *record.Fields) any {
		seq, q := record.ReadRequest(r)
		return []any{seq, q}
	})
	check(record.KindNode, fullNode, func(r *record.Fields) any { return record.ReadNode(r) })
	check(record.KindType, &fullType, func(r *record.Fields) any { return record.ReadType(r) })
	check(record.KindGone, []any{uint64(1<<53 - 1), &fullGone}, func(r *record.Fields) any {
		id, g := record.ReadGone(r)
		return []any{id, g}
	})
	check(record.KindTrail, fullTrail, func(r *record.Fields) any {
		c, err := event.ReadChunk(r)
		if err != nil {
			return err
		}
		return c.Saved
	})
	check(record.KindSchedule, &fullSchedule, func(r *record.Fields) any { return record.ReadSchedule(r) })
	check(record.KindTurn, []any{uint64(1<<53 - 1), &fullTurn}, func(r *record.Fields) any {
		number, turn := record.ReadTurn(r)
		return []any{number, turn}
	})
	check(record.KindShare, []any{uint64(1<<53 - 1), &fullShare}, func(r *record.Fields) any {
		number, of := record.ReadShare(r)
		return []any{number, of}
	})
	check(record.KindHistory, &fullHistory, func(r *record.Fields) any { return record.ReadHistory(r) })
	check(record.KindEnd, []any{fullCounts, fullHash}, func(r *record.Fields) any {
		n, hash := record.ReadEnd(r)
		return []any{n, hash}
	})
}
