package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

type applyOptions struct {
	dryRun      bool
	prune       string
	pruneShares bool
}

// NewApplyCommand returns the command `claimq apply`.
func NewApplyCommand(a *term.App) *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply FILE | -",
		Short: "Make types, shares, schedules and defaults what a file says",
		Long: `Compare defaults, task types, shares and schedules with a YAML file, and change those
that differ. The fields are those of the HTTP API; durations are as on the command line,
under the name without _ms. What the file does not have stays: defaults, types, shares
and schedules, and whether one is paused. A type, a share or a schedule that it has is
made the same in all other fields. With --prune, schedules whose tasks have that label
are deleted if the file does not have them. With --prune-shares, so are the settings of
shares of the types that the file has under shares; a pause stays.

With --dry-run nothing changes, and the exit code is 5 if the cluster differs.`,
		Example: `  claimq apply claimq.yaml --dry-run
  claimq apply claimq.yaml --prune managed-by=ops
  claimq apply tenants.yaml --prune-shares`,
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, args []string) (session.Act, error) {
		data, err := readInput(a, args[0])
		if err != nil {
			return nil, term.UsageErrorf("FILE: %w", err)
		}
		d, err := readDeclared(data)
		if err != nil {
			return nil, term.UsageErrorf("%s: %w", args[0], err)
		}
		if err := o.checkPrune(d); err != nil {
			return nil, err
		}
		return func(s session.Talk) error { return o.apply(cmd.Context(), s, d) }, nil
	})
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "only say what would change")
	f.StringVar(&o.prune, "prune", "", "as NAME=VALUE: delete the schedules whose tasks have this label and that the file does not have")
	f.BoolVar(&o.pruneShares, "prune-shares", false, "remove the settings of shares that the file does not have, of each type that it has under shares")
	return cmd
}

// checkPrune refuses a file with schedules that a later --prune would not find, and one without shares to compare with.
func (o *applyOptions) checkPrune(d *declared) error {
	if o.pruneShares && len(d.shares) == 0 {
		return term.UsageErrorf("--prune-shares: the file has no types under shares")
	}
	if o.prune == "" {
		return nil
	}
	if name, value, ok := strings.Cut(o.prune, "="); !ok || name == "" || value == "" {
		return term.UsageErrorf("--prune is %q: it must be NAME=VALUE, a label of tasks", o.prune)
	}
	for _, s := range d.schedules {
		var task struct {
			Labels map[string]string `json:"labels"`
		}
		_ = json.Unmarshal(s.fields["task"], &task) // a task that is wrong is refused by the server
		if !o.prunes(task.Labels) {
			return term.UsageErrorf("schedule %q does not have the label %s: give it to its task, or leave --prune out", s.name, o.prune)
		}
	}
	return nil
}

func (o *applyOptions) prunes(labels map[string]string) bool {
	name, value, _ := strings.Cut(o.prune, "=")
	have, ok := labels[name]
	return ok && have == value
}

// difference describes how an object of the cluster differs from the file.
type difference struct {
	Object   string                 `json:"object"` // defaults, type, share or schedule
	Name     string                 `json:"name,omitempty"`
	ShareKey string                 `json:"share_key,omitempty"` // of a share of the type Name
	Action   string                 `json:"action"`              // unchanged, change, create or delete
	Changes  map[string]fieldChange `json:"changes,omitempty"`

	request session.Request
}

// String names the object.
func (d *difference) String() string {
	what := strings.TrimSpace(d.Object + " " + term.Printable(d.Name))
	if d.ShareKey != "" {
		what += " " + term.Printable(d.ShareKey)
	}
	return what
}

// fieldChange is the value of a field before and after; null where it has no value.
type fieldChange struct {
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

// apply compares everything first, so that a file which the server does not understand changes as little as possible.
func (o *applyOptions) apply(ctx context.Context, s session.Talk, d *declared) error {
	all, err := o.compare(ctx, s, d)
	if err != nil {
		return err
	}
	differ := 0
	for i := range all {
		if all[i].Action != "unchanged" {
			differ++
			if err := o.do(ctx, s, &all[i]); err != nil {
				return err
			}
		}
		if err := all[i].show(s); err != nil {
			return err
		}
	}
	if o.dryRun && differ > 0 {
		return &term.DiffersError{Objects: differ}
	}
	return nil
}

func (o *applyOptions) do(ctx context.Context, s session.Talk, d *difference) error {
	if o.dryRun {
		return nil
	}
	_, err := s.Do(ctx, d.request, new(json.RawMessage))
	var call *term.CallError
	if errors.As(err, &call) {
		call.About = d.String() + ": "
	}
	return err
}

// show prints a line, or one for each field that differs.
func (d *difference) show(s session.Talk) error {
	if s.Flags.Output == "json" {
		line, err := json.Marshal(d)
		if err != nil {
			return err
		}
		return s.App.Sayf("%s", term.SafeJSON(line))
	}
	if d.Action != "change" {
		return s.App.Sayf("%s: %s", d, d.Action)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Changes)) {
		c := d.Changes[name]
		if err := s.App.Sayf("%s: %s: %s -> %s", d, strings.TrimSuffix(name, "_ms"), shownValue(name, c.From), shownValue(name, c.To)); err != nil {
			return err
		}
	}
	return nil
}

func shownValue(name string, value json.RawMessage) string {
	ms, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case string(value) == "null":
		return none
	case err == nil && strings.HasSuffix(name, "retention_ms"):
		return term.ShowRetention(ms)
	case err == nil && strings.HasSuffix(name, "_ms"):
		return term.ShowMS(ms)
	}
	return term.CutTo(term.Printable(string(value)), 60)
}

// compare asks for each object of the file, for all shares with settings of its types, and, to prune, for all schedules.
func (o *applyOptions) compare(ctx context.Context, s session.Talk, d *declared) (all []difference, err error) {
	if d.defaults != nil {
		var answer struct{ Defaults fields }
		if _, err := s.Do(ctx, session.Get(defaultsPath), &answer); err != nil {
			return nil, err
		}
		diff, err := patched("defaults", "", defaultsPath, answer.Defaults, d.defaults, reflect.TypeFor[wire.ServerDefaults]())
		if err != nil {
			return nil, err
		}
		all = append(all, diff)
	}
	for _, t := range d.types {
		var answer struct{ Type fields }
		if _, err := s.Do(ctx, session.Get(typePath(t.name)), &answer); err != nil {
			return nil, err
		}
		diff, err := patched("type", t.name, typePath(t.name), answer.Type, t.fields, reflect.TypeFor[wire.TypeSettings]())
		if err != nil {
			return nil, err
		}
		all = append(all, diff)
	}
	for i := range d.shares {
		shares, err := o.compareShares(ctx, s, &d.shares[i])
		if err != nil {
			return nil, err
		}
		all = append(all, shares...)
	}
	for _, w := range d.schedules {
		diff, err := compareSchedule(ctx, s, w)
		if err != nil {
			return nil, err
		}
		all = append(all, diff)
	}
	if o.prune == "" {
		return all, nil
	}
	pruned, err := o.pruned(ctx, s, d)
	return append(all, pruned...), err
}

// patched compares settings, and makes the PATCH of those that differ.
func patched(object, name, path string, have, want fields, of reflect.Type) (difference, error) {
	d := difference{Object: object, Name: name, Action: "unchanged", Changes: map[string]fieldChange{}}
	patch := fields{}
	for field := range jsonFields(of) {
		if _, given := want[field]; !given && (field == "paused" || object == "defaults") {
			continue
		}
		if from, to := orNull(have[field]), orNull(want[field]); !sameValue(field, from, to) {
			d.Changes[field], patch[field], d.Action = fieldChange{from, to}, to, "change"
		}
	}
	var err error
	d.request, err = session.Patch(path, patch, setsAgain)
	return d, err
}

// compareShares compares the shares of a type that the file has, and, to prune, the others that have settings.
func (o *applyOptions) compareShares(ctx context.Context, s session.Talk, d *declaredShares) (all []difference, err error) {
	have, err := sharesWithSettings(ctx, s, d.taskType)
	if err != nil {
		return nil, err
	}
	for _, w := range d.shares {
		diff, err := compareShare(d.taskType, w.name, have[w.name], w.fields)
		if err != nil {
			return nil, err
		}
		all = append(all, diff)
		delete(have, w.name)
	}
	if !o.pruneShares {
		return all, nil
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		diff, err := compareShare(d.taskType, key, have[key], nil)
		if err != nil {
			return nil, err
		}
		switch {
		case diff.Action == "unchanged":
			continue // it is only paused
		case string(have[key]["paused"]) != "true":
			diff.Action, diff.Changes = "delete", nil
			if diff.request, err = session.Delete(sharePath(d.taskType, key), "Repeat the command: deleting twice does no harm."); err != nil {
				return nil, err
			}
		}
		all = append(all, diff)
	}
	return all, nil
}

// compareShare compares the settings of a share, and makes the PUT of what they are to be. A pause stays if the file does
// not say.
func compareShare(taskType, key string, have, want fields) (d difference, err error) {
	d = difference{Object: "share", Name: taskType, ShareKey: key, Action: "unchanged", Changes: map[string]fieldChange{}}
	set := fields{}
	for field := range jsonFields(reflect.TypeFor[wire.ShareSettings]()) {
		from, to := shareValue(field, have[field]), shareValue(field, want[field])
		if _, given := want[field]; !given && field == "paused" {
			to = from
		}
		if set[field] = to; !sameValue(field, from, to) {
			d.Changes[field], d.Action = fieldChange{from, to}, "change"
		}
	}
	d.request, err = session.Put(sharePath(taskType, key), set, setsAgain)
	return d, err
}

// shareValue returns the value of a setting. The weight that a share has without one is null.
func shareValue(field string, value json.RawMessage) json.RawMessage {
	if field == "weight" && string(value) == strconv.Itoa(wire.WeightDefault) {
		return orNull(nil)
	}
	return orNull(value)
}

// sharesWithSettings returns the shares of the type that have settings, by share key.
func sharesWithSettings(ctx context.Context, s session.Talk, taskType string) (map[string]fields, error) {
	found := map[string]fields{}
	for after := ""; ; {
		q := url.Values{"settings": {"true"}}
		if after != "" {
			q.Set("after", after)
		}
		var page struct {
			Shares []fields
			Next   string
		}
		if _, err := s.Do(ctx, session.Get(typePath(taskType)+"/shares?"+q.Encode()), &page); err != nil {
			return nil, err
		}
		for _, share := range page.Shares {
			var key string
			if err := json.Unmarshal(share["share_key"], &key); err != nil {
				return nil, err
			}
			found[key] = share
		}
		if after = page.Next; after == "" {
			return found, nil
		}
	}
}

// compareSchedule compares a schedule. It is replaced as a whole, so what the file leaves out has the API's default.
func compareSchedule(ctx context.Context, s session.Talk, w declaredObject) (d difference, err error) {
	d = difference{Object: "schedule", Name: w.name, Action: "unchanged", Changes: map[string]fieldChange{}}
	want := maps.Clone(w.fields)
	var task fields
	if err := json.Unmarshal(want["task"], &task); err == nil && task != nil && task["params"] == nil && task["payload"] == nil && isEmpty(orNull(task["steps"])) {
		task["params"] = json.RawMessage("{}")
		if want["task"], err = json.Marshal(task); err != nil {
			return d, err
		}
	}
	var answer struct{ Schedule fields }
	_, err = s.Do(ctx, session.Get(schedulePath(w.name)), &answer)
	var refusal *client.Error
	switch have := answer.Schedule; {
	case err == nil:
		if _, ok := want["paused"]; !ok {
			want["paused"] = have["paused"]
		}
		d.compareFields("", have, want, reflect.TypeFor[wire.NewSchedule]())
	case errors.As(err, &refusal) && wire.Code(refusal.Code) == wire.CodeScheduleNotFound:
		d.Action = "create"
	default:
		return d, err
	}
	d.request, err = session.Put(schedulePath(w.name), want, setsAgain)
	return d, err
}

// compareFields notes the fields of a schedule that differ, those of its task by themselves.
func (d *difference) compareFields(prefix string, have, want fields, of reflect.Type) {
	for field, fieldType := range jsonFields(of) {
		if field == "task" {
			var haveTask, wantTask fields
			_ = json.Unmarshal(have[field], &haveTask)
			_ = json.Unmarshal(want[field], &wantTask) // one that is no object differs in every field
			d.compareFields("task.", haveTask, wantTask, reflect.TypeFor[wire.NewTask]())
			continue
		}
		from, to := orNull(have[field]), orNull(want[field])
		if field == "steps" && d.compareSteps(prefix, from, to) {
			continue
		}
		isDefault := isEmpty(to) && (string(from) == scheduleDefaults[prefix+field] || fieldType.Kind() != reflect.Pointer && fieldType != reflect.TypeFor[json.RawMessage]() && isEmpty(from)) ||
			string(from) == "null" && string(to) == leftOut[field]
		if !isDefault && !sameValue(field, from, to) {
			d.Changes[prefix+field], d.Action = fieldChange{from, to}, "change"
		}
	}
}

// compareSteps compares the steps of a schedule's task one by one. done is false if there are not as many: then they
// differ as a whole.
func (d *difference) compareSteps(prefix string, have, want json.RawMessage) (done bool) {
	var haveSteps, wantSteps []fields
	if json.Unmarshal(have, &haveSteps) != nil || json.Unmarshal(want, &wantSteps) != nil || len(haveSteps) != len(wantSteps) {
		return false
	}
	for i := range wantSteps {
		for _, s := range []fields{haveSteps[i], wantSteps[i]} {
			var names []string
			if err := json.Unmarshal(s["depends_on"], &names); err == nil { // their order says nothing
				slices.Sort(names)
				s["depends_on"], _ = json.Marshal(names)
			}
		}
		d.compareFields(fmt.Sprintf("%ssteps[%d].", prefix, i), haveSteps[i], wantSteps[i], reflect.TypeFor[wire.NewStep]())
	}
	return true
}

// leftOut are the values of a task's fields that the server leaves out of its answers.
var leftOut = map[string]string{"task_type": `"default"`, "finalize": `"auto"`, "on_step_failure": `"fail"`}

// scheduleDefaults are the values that the server answers for fields that a schedule was set without.
var scheduleDefaults = map[string]string{"overlap": `"skip"`, "catch_up": `"one"`, "timezone": `"UTC"`}

// pruned returns the schedules that have the label of --prune and are not in the file.
func (o *applyOptions) pruned(ctx context.Context, s session.Talk, d *declared) (all []difference, err error) {
	declares := func(name string) bool {
		return slices.ContainsFunc(d.schedules, func(s declaredObject) bool { return s.name == name })
	}
	for path := "/api/schedules"; ; {
		var page wire.Schedules
		if _, err := s.Do(ctx, session.Get(path), &page); err != nil {
			return nil, err
		}
		for i := range page.Schedules {
			if p := &page.Schedules[i]; o.prunes(p.Task.Labels) && !declares(p.Name) {
				r, err := session.Delete(schedulePath(p.Name), "Repeat the command: deleting twice does no harm.")
				if err != nil {
					return nil, err
				}
				all = append(all, difference{Object: "schedule", Name: p.Name, Action: "delete", request: r})
			}
		}
		if page.Next == "" {
			return all, nil
		}
		path = "/api/schedules?after=" + url.QueryEscape(page.Next)
	}
}

// orNull returns a value that JSON can have.
func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

// isEmpty reports whether the API takes a value as a field that is not given, unless the field can be null.
func isEmpty(value json.RawMessage) bool {
	switch string(value) {
	case "null", `""`, "0", "false", "{}", "[]":
		return true
	}
	return false
}

// sameValue compares JSON regardless of spaces, of the order of keys and of how numbers are written. Of a backoff only
// what the file gives is compared, because the server fills in the rest.
func sameValue(field string, have, want json.RawMessage) bool {
	h, errHave := decodeNumbers(have)
	w, errWant := decodeNumbers(want)
	if errHave != nil || errWant != nil {
		return false // the server refuses what is no JSON
	}
	if given, ok := w.(map[string]any); ok && field == "backoff" {
		if full, ok := h.(map[string]any); ok {
			maps.DeleteFunc(full, func(name string, _ any) bool { _, ok := given[name]; return !ok })
		}
	}
	return reflect.DeepEqual(h, w) || h == false && w == nil // null turns a switch off
}

// decodeNumbers decodes JSON. Numbers that a float64 cannot hold exactly stay as they are written.
func decodeNumbers(value json.RawMessage) (v any, err error) {
	in := json.NewDecoder(bytes.NewReader(value))
	in.UseNumber()
	err = in.Decode(&v)
	return exactNumbers(v), err
}

func exactNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = exactNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = exactNumbers(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && math.Abs(f) < 1<<53 {
			return f
		}
	}
	return v
}
