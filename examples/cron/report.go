package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimq/claimq/client"
)

// report counts the submitted tasks of each type from the last report up to, but not including, the time that this
// one was due.
type report struct {
	From  time.Time      `json:"from"` // the last report's To; zero: from the beginning
	To    time.Time      `json:"to"`
	Task  string         `json:"task"` // the task that wrote it
	Count map[string]int `json:"count"`
}

// count makes the report that is due at a time. It begins where the last one ended, so skipped times cause no gap and
// nothing is counted twice.
func (r *reporter) count(ctx context.Context, due time.Time) (report, error) {
	rep := report{To: due, Count: map[string]int{}}
	filter := client.Filter{CreatedBefore: due}
	last, ok, err := lastBefore(r.dir, due)
	if err != nil {
		return rep, err
	}
	if ok {
		rep.From = last
		filter.CreatedAfter = last.Add(-time.Millisecond) // the filter leaves out the time itself
	}
	for task, err := range r.c.Tasks(ctx, filter) {
		if err != nil {
			return rep, err
		}
		rep.Count[task.TaskType]++
	}
	return rep, nil
}

// nameLayout makes the names of reports, which sort by time.
const nameLayout = "2006-01-02T15-04-05.000Z.json"

func fileName(dir string, due time.Time) string {
	return filepath.Join(dir, due.UTC().Format(nameLayout))
}

// lastBefore returns when the last report before a time was due.
func lastBefore(dir string, due time.Time) (last time.Time, ok bool, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return last, false, err
	}
	for _, file := range files {
		at, err := time.Parse(nameLayout, file.Name())
		if err == nil && at.Before(due) && (!ok || at.After(last)) {
			last, ok = at, true
		}
	}
	return last, ok, nil
}

// save puts the report in its place in one step. A second attempt for the same time writes the same file again. The
// file is on disk before the task is completed.
func save(dir string, rep report, token int64) error {
	data, err := json.Marshal(rep)
	if err != nil {
		return err
	}
	name := fileName(dir, rep.To)
	temporary := fmt.Sprintf("%s.%d.tmp", strings.TrimSuffix(name, ".json"), token)
	if err := write(temporary, append(data, '\n')); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}

func write(name string, data []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
