package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

// ShareSettings are the settings of one share: of the tasks of a type with the same ShareKey. They come before those of
// the type. Pause and limits affect only new claims.
type ShareSettings struct {
	Paused     bool    // tasks can be claimed only by id
	MaxClaimed int     // claims at a time; 0: the type's MaxClaimedPerKey
	Weight     int     // how many turns it gets in a fair type, 1 to 10,000; 0: 100
	RateLimit  float64 // claims per second, six decimals; 0: the type's RateLimitPerKey
}

// Share is a share with its numbers and settings.
type Share struct {
	ShareKey string
	Pending  int64 // pending tasks, except those that wait for another task of their group
	Claimed  int64
	// OldestWait is the time for which the oldest of the pending tasks has been pending.
	OldestWait time.Duration
	// State is open, paused, limited (at its maximum of claims) or rate_limited; the type may be closed all the same.
	State    string
	OpensAt  time.Time // when its rate limit lets a claim through; zero: now
	Settings ShareSettings
}

// SharesQuery selects shares of a type. The zero value selects all, by share key.
type SharesQuery struct {
	ByPending    bool   // those with most pending tasks first, up to 100
	WithSettings bool   // only those with settings
	Limit        int    // up to 1,000; 0: 1,000
	After        string // Shares.Next of the previous page
}

// Shares is a page of shares.
type Shares struct {
	Shares []Share
	Next   string // for SharesQuery.After of the next page; "": this is the last page
}

// Shares returns the shares of a type that have pending or claimed tasks, or settings.
func (c *Client) Shares(ctx context.Context, taskType string, q SharesQuery) (*Shares, error) {
	values := url.Values{}
	if q.ByPending {
		values.Set("order", "pending")
	}
	if q.WithSettings {
		values.Set("settings", "true")
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.After != "" {
		values.Set("after", q.After)
	}
	var w wire.Shares
	if err := c.get(ctx, withQuery(sharesPath(taskType), values), &w); err != nil {
		return nil, fmt.Errorf("list shares of %q: %w", taskType, err)
	}
	shares := &Shares{Shares: make([]Share, len(w.Shares)), Next: w.Next}
	for i := range w.Shares {
		shares.Shares[i] = shareFromWire(&w.Shares[i])
	}
	return shares, nil
}

// SetShare replaces the settings of a share, which need not have tasks yet, and returns the share. If its answer is lost,
// it is repeated with the same values.
func (c *Client) SetShare(ctx context.Context, taskType, shareKey string, s ShareSettings) (*Share, error) {
	body, err := s.encode()
	var share *Share
	if err == nil {
		share, err = c.shareCall(ctx, http.MethodPut, taskType, shareKey, body)
	}
	if err != nil {
		return nil, fmt.Errorf("set share %q of %q: %w", shareKey, taskType, err)
	}
	return share, nil
}

// DeleteShare removes the settings of a share, not its tasks, and returns the share.
func (c *Client) DeleteShare(ctx context.Context, taskType, shareKey string) (*Share, error) {
	share, err := c.shareCall(ctx, http.MethodDelete, taskType, shareKey, nil)
	if err != nil {
		return nil, fmt.Errorf("delete share %q of %q: %w", shareKey, taskType, err)
	}
	return share, nil
}

func (c *Client) shareCall(ctx context.Context, method, taskType, shareKey string, body []byte) (*Share, error) {
	a, err := c.call(ctx, Request{
		Method: method, Path: sharesPath(taskType) + "/" + url.PathEscape(shareKey), Body: body, Repeatable: repeat.OpSetType.Safe(false),
	})
	if err != nil {
		return nil, err
	}
	var decoded wire.Shares
	if err := json.Unmarshal(a.body, &decoded); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	if decoded.Share == nil {
		return nil, errors.New("the answer has no share")
	}
	return new(shareFromWire(decoded.Share)), nil
}

func sharesPath(taskType string) string { return "/api/types/" + url.PathEscape(taskType) + "/shares" }

func (s *ShareSettings) encode() ([]byte, error) {
	w := wire.ShareSettings{Paused: s.Paused}
	switch {
	case s.MaxClaimed < 0 || s.MaxClaimed > math.MaxInt32:
		return nil, fmt.Errorf("max claimed is %d, it must be 1 to %d, or 0", s.MaxClaimed, math.MaxInt32)
	case s.Weight < 0 || s.Weight > wire.WeightMax:
		return nil, fmt.Errorf("weight is %d, it must be 1 to %d, or 0", s.Weight, wire.WeightMax)
	case math.IsNaN(s.RateLimit) || math.IsInf(s.RateLimit, 0):
		return nil, fmt.Errorf("rate limit is %v", s.RateLimit)
	}
	w.Weight = int32(s.Weight)
	if s.MaxClaimed != 0 {
		w.MaxClaimed = new(int32(s.MaxClaimed))
	}
	if s.RateLimit != 0 {
		w.RateLimit = new(math.Round(s.RateLimit*1e6) / 1e6)
	}
	return json.Marshal(w)
}

func shareFromWire(w *wire.Share) Share {
	s := Share{
		ShareKey: w.ShareKey, Pending: w.Pending, Claimed: w.Claimed, OldestWait: time.Duration(w.OldestWaitMS) * time.Millisecond,
		State: string(w.State), OpensAt: timeOf(w.OpensAt), Settings: ShareSettings{Paused: w.Paused, Weight: int(w.Weight)},
	}
	if w.MaxClaimed != nil {
		s.Settings.MaxClaimed = int(*w.MaxClaimed)
	}
	if w.RateLimit != nil {
		s.Settings.RateLimit = *w.RateLimit
	}
	return s
}
