package cli

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/timespan"
)

// filterFlags holds the flags that select tasks.
type filterFlags struct {
	status, taskType, worker    string
	parent                      positive
	labels                      []string
	createdAfter, createdBefore string
	errorGroup, shareKey        string
}

func (o *filterFlags) addFilterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.status, "status", "", "only these: pending, scheduled, claimed, completed, failed, cancelled, ...")
	f.StringVar(&o.taskType, "type", "", "only this task type")
	f.StringVar(&o.worker, "worker", "", "only those that this worker holds, or ended")
	f.Var(&o.parent, "parent", "only the steps of this task")
	f.StringArrayVar(&o.labels, "label", nil, "only those with this label, as name=value; repeatable: all must match")
	f.StringVar(&o.shareKey, "share-key", "", "only those of this share key")
	f.StringVar(&o.createdAfter, "created-after", "", "only those submitted after this time, as 2026-01-02T15:04:05Z, or this long ago, as 90m or 7d")
	f.StringVar(&o.createdBefore, "created-before", "", "only those submitted before this time, or this long ago")
	f.StringVar(&o.errorGroup, "error-group", "", "only failed ones of this GROUP, as claimq failures shows it")
}

// filter builds the filter from the flags. A length of time counts back from now.
func (o *filterFlags) filter(now time.Time) (wire.Filter, error) {
	f := wire.Filter{Status: o.status, TaskType: o.taskType, WorkerID: o.worker, ParentID: uint64(o.parent), ErrorGroup: o.errorGroup, ShareKey: o.shareKey}
	var err error
	if f.Labels, err = parseLabels(o.labels); err != nil {
		return f, err
	}
	if f.CreatedAfter, err = parseTimeOrAgo("--created-after", o.createdAfter, now); err != nil {
		return f, err
	}
	f.CreatedBefore, err = parseTimeOrAgo("--created-before", o.createdBefore, now)
	return f, err
}

// Query returns the filter as the query parameters of a list.
func Query(f *wire.Filter) url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("status", f.Status)
	set("task_type", f.TaskType)
	set("worker_id", f.WorkerID)
	set("error_group", f.ErrorGroup)
	set("share_key", f.ShareKey)
	if f.ParentID != 0 {
		q.Set("parent_id", strconv.FormatUint(f.ParentID, 10))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
		q.Add("label", name+":"+f.Labels[name])
	}
	if f.CreatedAfter != nil {
		q.Set("created_after", f.CreatedAfter.Format(time.RFC3339Nano))
	}
	if f.CreatedBefore != nil {
		q.Set("created_before", f.CreatedBefore.Format(time.RFC3339Nano))
	}
	return q
}

// parseTimeOrAgo reads the time of a flag. A length of time counts back from now. It returns nil for "".
func parseTimeOrAgo(flag, value string, now time.Time) (*time.Time, error) {
	if d, err := timespan.Parse(value); err == nil && d >= 0 {
		at := now.Add(-d).UTC()
		return &at, nil
	}
	at, err := parseTime(flag, value)
	if err != nil {
		return nil, term.UsageErrorf("%s is %q: it must be a time as 2026-01-02T15:04:05Z, or so long ago, as 90m or 7d", flag, value)
	}
	return at, nil
}
