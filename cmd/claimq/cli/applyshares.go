package cli

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
)

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
