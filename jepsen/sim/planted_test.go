package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// edit replaces old, which is in the file once, by new. Files are named from the
// module's root.
type edit struct{ file, old, new string }

// planted are bugs that the simulator must find. The product's source knows
// nothing of them: they are changes that one build alone sees.
var planted = []struct {
	name  string
	edits []edit
}{
	{"token not checked", []edit{{"fsm/settle.go", "	case h.Token != 0 && h.Token != t.Token:\n", "	case false:\n"}}},
	{"wall clock in Apply", []edit{
		{"fsm/apply.go", `import "fmt"`, "import (\n\"fmt\"\n\"time\"\n)"},
		{"fsm/apply.go", "max(m.header.Stamp.T, stamp.T)", "max(m.header.Stamp.T, stamp.T+time.Now().UnixMicro()%2)"},
	}},
	{"leases by the calendar", []edit{{
		"cluster/lease/clock.go", "c.baseU + (mono - c.start).Milliseconds()", "max(c.baseU, c.calendar/int64(time.Millisecond))",
	}}},
	{"map order in claim", []edit{{"fsm/chooser.go", "		n.any = &m.ready\n", `		for _, ts := range m.types {
			if ts.standing == typeOpen {
				n.sources = append(sources, source{contender: &ts.contender, of: ts})
				break
			}
		}
`}}},
	{"expiry without sequence", []edit{{"fsm/expire.go", " || t.LeaseSeq != l.Seq {", " {"}}},
	{"snapshot without request ids", []edit{{"fsm/capture.go", "m.requests.view()", "new(table[request]).view()"}}},
	{"restore that keeps old state", []edit{
		{"fsm/capture.go", "// Index returns", `func (m *Machine) Keep(old *Machine) {
	for id, t := range old.tasks.all() {
		if m.tasks.get(id) == nil {
			kept := *t
			m.tasks.put(id, &kept)
		}
	}
	if err := m.rebuild(); err != nil {
		panic(err)
	}
}

// Index returns`},
		{"jepsen/sim/replica.go", "	r.machine, r.applied = machine, f.at\n", "	if r.machine != nil {\n		machine.Keep(r.machine)\n	}\n	r.machine, r.applied = machine, f.at\n"},
	}},
	{"unknown command skipped", []edit{{
		"fsm/decode.go", "		return nil, fmt.Errorf(\"%w: type %d\", ErrUnknownCommand, k)\n", "		return Tick{}, nil\n",
	}}},
	{"lease dropped at failover", []edit{{"cluster/lease/timers.go", "	t.Add(live)\n", "	_ = live\n"}}},
	{"retried claim takes a second task", []edit{{
		"fsm/requests.go", "	r, seq := m.findRequest(id)\n	if r == nil {\n", "	r, seq := m.findRequest(id)\n	if r = nil; r == nil {\n",
	}}},
	{"duplicates checked in the handler only", []edit{
		{"fsm/submit.go", "	if t := m.ByKey(n.Key); t != nil {\n", "	if t := (*Task)(nil); t != nil {\n"},
		{"jepsen/sim/client.go", "	default:\n		l.propose(", `	case m.c.verb == verbSubmit && len(m.c.tasks) == 1 && l.replica.machine.ByKey(m.c.tasks[0].key) != nil:
		t := *l.replica.machine.ByKey(m.c.tasks[0].key)
		m.reply(reply{ok: true, o: outcome{result: fsm.Result{Submitted: []fsm.Submitted{{Task: &t}}}}})
	default:
		l.propose(`},
	}},
	{"claimed task lets its group go on", []edit{{
		"fsm/group.go", "	if t.Options == nil || t.Status.Ended() {\n", "	if t.Options == nil || t.Status.Ended() || t.Status == StatusClaimed {\n",
	}}},
	{"revived head beside a claim of its group", []edit{{"fsm/group.go", "	if g.claimed > 0 || ", "	if "}}},
	{"one claim more than max_claimed", []edit{{
		"fsm/ready.go", "	return int64(ts.record.Settings.MaxClaimed) - ts.counts[StatusClaimed]\n",
		"	return int64(ts.record.Settings.MaxClaimed) + 1 - ts.counts[StatusClaimed]\n",
	}}},
	{"claim by id past the limits", []edit{{"fsm/claim.go", "	case ts.slots() <= 0:\n", "	case ts.slots() < 0:\n"}}},
	{"bucket that fills twice", []edit{{
		"fsm/bucket.go", "		r.Bucket, r.BucketT = r.bucketAt(t)-claimUnit, max(t, r.BucketT)\n", "		r.Bucket = r.bucketAt(t) - claimUnit\n",
	}}},
	{"removed task forgotten", []edit{{"fsm/ended.go", "	m.rememberGone(t)\n", ""}}},
	{"removed task without its key", []edit{{"fsm/gone.go", "	if holdsKey(t) {\n", "	if false {\n"}}},
	{"repeated completion claims again", []edit{{"fsm/complete.go", "		return m.repeatThen(result)\n", `		result = m.repeatThen(result)
		if c.Claim != nil {
			result.Claims = m.claimNext(*c.Claim).Claims
		}
		return result
`}}},
	{"refused batch keeps its tokens", []edit{{"fsm/undo.go", "	m.header = u.header\n", "	u.header.NextToken = m.header.NextToken\n	m.header = u.header\n"}}},
	{"cancel lost at an expiry", []edit{{"fsm/settle.go", "	case t.CancelRequested:\n", "	case t.CancelRequested && outcome != OutcomeExpired:\n"}}},
	{"random claim of a closed type", []edit{{
		"fsm/random.go", "		if ts == nil || ts.standing != typeOpen {\n", "		if ts == nil {\n",
	}}},
	{"slot run twice, its version not checked", []edit{{"fsm/schedule.go", "v.Version == item.Version && ", ""}}},
	{"slot run twice, its time not checked", []edit{{"fsm/schedule.go", "v.NextRunAt == item.Slot && ", "v.NextRunAt != 0 && "}}},
	{"slot run again once its schedule is set", []edit{{"fsm/schedule.go", "		v.keepDone(was)\n", ""}}},
	{"slots lost at a restore", []edit{{"fsm/rebuild.go", "		m.includeSchedule(v)\n", "		m.bytes += bytesOfSchedule(v)\n"}}},
	{"slot left out", []edit{{"internal/cron/cron.go", "	return now - behind + t.everyMS, true\n", "	return max(now-behind, slot+t.everyMS) + t.everyMS, true\n"}}},
	{"overlap not looked at", []edit{{"fsm/schedule.go", "!v.OverlapAllow && m.lives(v.LastTaskID)", "!v.OverlapAllow && v.LastTaskID == m.header.NextID"}}},
	{"filter not checked again", []edit{{"fsm/act.go", " && c.Filter.matches(t) && ", " && "}}},
	{"claim told twice", []edit{{"fsm/claim.go", "	m.tellClaim(EventClaimed, t)\n", "	m.tellClaim(EventClaimed, t)\n	m.tellClaim(EventClaimed, t)\n"}}},
	{"asked cancel not told", []edit{{"fsm/cancel.go", "		m.tellClaim(EventCancelRequested, t)\n", ""}}},
	{"refused batch leaves its events", []edit{{"fsm/undo.go", "	m.cutTrail(u.trail)\n", ""}}},
	{"trail trimmed early", []edit{{"fsm/trail_store.go", "h.Stamp.T-c.newestT < bounds.AgeMS {", "h.Stamp.T-c.newestT < bounds.AgeMS/2 {"}}},
	// What the simulator has found, and must go on finding.
	{"found: lease a millisecond short", []edit{{"cluster/lease/timers.go", "	marginMS   = 2\n", "	marginMS   = 1\n"}}},
	{"found: extend that crosses an expiry", []edit{{
		"cluster/lease/timers.go", "	if ended < len(leases) {\n", "	if ended == 0 && len(leases) > 1<<20 {\n",
	}}},
}

// plantedSeeds is how many seeds a planted bug may take at most.
const plantedSeeds = 5000

// Each planted bug is found. The log tells how many seeds and how long it took.
func TestPlanted(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	failure := regexp.MustCompile(`(?m)^seed (\d+) fails: .*$`)
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			binary := buildPlanted(t, root, p.edits)
			start := time.Now()
			child := exec.CommandContext(t.Context(), binary, "-test.run", "^TestPlanted_child$", "-test.v")
			child.Env = append(os.Environ(), fmt.Sprintf("SIM_CHILD_SEEDS=%d", plantedSeeds))
			out, err := child.CombinedOutput()
			found := failure.FindSubmatch(out)
			if err == nil || found == nil {
				t.Fatalf("not found in %d seeds (%v)\n%s", plantedSeeds, err, out[:min(len(out), 2000)])
			}
			t.Logf("found by seed %s in %.1f s: %s", found[1], time.Since(start).Seconds(), found[0])
		})
	}
}

// The other side of TestPlanted, in a build with a bug.
func TestPlanted_child(t *testing.T) {
	seeds := os.Getenv("SIM_CHILD_SEEDS")
	if seeds == "" {
		return
	}
	if err := Main(t.Context(), []string{"--seeds", seeds, "--parallel", "1"}, os.Stdout); err != nil {
		t.Fatal(err)
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// buildPlanted builds this test with the edits and returns its path.
func buildPlanted(t *testing.T, root string, edits []edit) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for _, e := range edits {
		original := filepath.Join(root, filepath.FromSlash(e.file))
		path, ok := replace[original]
		if !ok {
			path = original
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			t.Fatalf("the source has moved on: %s has this %d times, not once:\n%s", e.file, n, e.old)
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(e.file, "/", "-"))
		if err := os.WriteFile(replace[original], []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "sim.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./jepsen/sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}
