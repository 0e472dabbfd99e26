package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// errOtherNode is returned when another node answers at an address.
var errOtherNode = errors.New("another node answers there")

// askMetrics scrapes the leader and one other node, in turn. Without a leader, or if the key may not see which node
// leads, it scrapes the node that answers.
func (s *Source) askMetrics(ctx context.Context, l *Look) bool {
	if l.Cluster == nil || l.NoLeader {
		m, err := s.scrape(ctx, s.current)
		if err != nil {
			s.failed(l, "the metrics", err)
			return false
		}
		l.Metrics[m.NodeID] = m
		return true
	}
	leader := l.Cluster.Leader
	answered := false
	if !time.Now().Before(s.unwell[leader]) {
		if m, err := s.scrapeNode(ctx, leader, s.addressOf(l, leader)); err != nil {
			s.unwell[leader] = time.Now().Add(putOff)
			s.failed(l, "the metrics of "+leader+", which leads", err)
		} else {
			l.Metrics[leader], answered = m, true
		}
	}
	if other, ok := s.nextNode(l); ok {
		if m, err := s.scrapeNode(ctx, other, s.addressOf(l, other)); err == nil {
			l.Metrics[other] = m
		} else {
			s.unwell[other] = time.Now().Add(putOff)
		}
	}
	return answered
}

// nextNode returns the next node to scrape. It skips the leader and nodes that do not answer.
func (s *Source) nextNode(l *Look) (string, bool) {
	var ids []string
	for i := range l.Cluster.Nodes {
		n := &l.Cluster.Nodes[i]
		if n.NodeID != l.Cluster.Leader && n.State != "unknown" && !time.Now().Before(s.unwell[n.NodeID]) {
			ids = append(ids, n.NodeID)
		}
	}
	if len(ids) == 0 {
		return "", false
	}
	s.turn++
	return ids[s.turn%len(ids)], true
}

// addressOf returns the address that the node reports for itself, or "" if that is unusable.
func (s *Source) addressOf(l *Look, id string) string {
	for i := range l.Cluster.Nodes {
		if addr := strings.TrimRight(l.Cluster.Nodes[i].HTTPAddr, "/"); l.Cluster.Nodes[i].NodeID == id && s.safe(addr) {
			return addr
		}
	}
	return ""
}

// scrapeNode finds the node and scrapes it. It tries the last known address, then the address that the node reports,
// then the endpoints, because reported addresses may be unknown here.
func (s *Source) scrapeNode(ctx context.Context, id, addr string) (Metrics, error) {
	var tried []string
	var firstErr error
	for _, base := range append([]string{s.bases[id], addr}, s.cfg.Endpoints...) {
		if base == "" || slices.Contains(tried, base) || s.isOther(base, id) {
			continue
		}
		tried = append(tried, base)
		m, err := s.scrape(ctx, base)
		if err == nil && m.NodeID != id {
			err = fmt.Errorf("%s: %w", base, errOtherNode)
		}
		if err == nil {
			s.bases[id] = base
			return m, nil
		}
		if s.bases[id] == base {
			delete(s.bases, id)
		}
		if firstErr == nil {
			firstErr = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if firstErr == nil {
		firstErr = errOtherNode
	}
	return Metrics{}, firstErr
}

// isOther reports whether base is known to be a node other than id.
func (s *Source) isOther(base, id string) bool {
	for other, known := range s.bases {
		if known == base && other != id {
			return true
		}
	}
	return false
}

// scrape asks one node for its metrics. It dates them to the middle between request and answer.
func (s *Source) scrape(ctx context.Context, base string) (Metrics, error) {
	sent := time.Now()
	body, err := s.get(ctx, base, "/metrics")
	if err != nil {
		return Metrics{}, err
	}
	s.metrics.took(sent, len(body))
	m := parseMetrics(string(body), sent.Add(time.Since(sent)/2))
	if m.NodeID == "" {
		return Metrics{}, &Refusal{Base: base, Status: 200}
	}
	return m, nil
}
