package model

import "cmp"

// taskType is what is set of a task type.
type taskType struct {
	settings Settings
	// left is what its rate limit lets be claimed, in billionths of a claim, as
	// of the calendar at.
	left, at int64
}

// TypeSeen is what an answer shows of a type.
type TypeSeen struct {
	Name     string
	Settings Settings
	Counts   map[string]int64
	AgeMS    int64 // of the oldest task that is pending
}

// oneClaim is a claim in the unit of a bucket.
const oneClaim = 1_000_000_000

func (m *Model) settingsOf(name string) Settings {
	if k := m.Types[name]; k != nil {
		return k.settings
	}
	return Settings{}
}

// inForce returns the type's settings, with the server's where they say nothing.
func (m *Model) inForce(name string) Settings {
	return m.settingsOf(name).Or(&m.Defaults)
}

// Or returns the settings, with those of d where they say nothing.
func (s Settings) Or(d *Settings) Settings {
	s.LeaseMS, s.KeepMS = cmp.Or(s.LeaseMS, d.LeaseMS), cmp.Or(s.KeepMS, d.KeepMS)
	s.Backoff = cmp.Or(s.Backoff, d.Backoff)
	if !s.Limited {
		s.Limited, s.Max = d.Limited, d.Max
	}
	return s
}

// setDefaults changes the server's defaults.
func (m *Model) setDefaults(c *Command) {
	was := m.Defaults
	m.Defaults = c.Changed(was)
	if !m.Defaults.Equal(&was) {
		m.tell("defaults_changed", nil, byWhom("", c.By))
	}
}

// burst is what the bucket of a rate holds: a second's worth, one claim at least.
func burst(rate int64) int64 { return max(rate*1000, oneClaim) }

// bucket returns what is in the type's bucket at the calendar t.
func (k *taskType) bucket(t int64) int64 {
	return min(k.left+max(t-k.at, 0)*k.settings.Rate, burst(k.settings.Rate))
}

// limited reports whether a limit of the type forbids a claim at t.
func (m *Model) limited(name string, t int64) bool {
	k := m.Types[name]
	return k != nil && (m.crowded(name) || k.settings.Rate != 0 && k.bucket(t) < oneClaim)
}

// crowded reports whether as many claims of the type live as may.
func (m *Model) crowded(name string) bool {
	most := m.settingsOf(name).Claims
	if most == 0 {
		return false
	}
	live := int32(0)
	for _, t := range m.Tasks {
		if t != nil && t.Kind == name && t.Status == Claimed {
			live++
		}
	}
	return live >= most
}

// spend takes a claim out of the type's bucket.
func (m *Model) spend(name string) {
	if k := m.Types[name]; k != nil && k.settings.Rate != 0 {
		k.left, k.at = k.bucket(m.T)-oneClaim, m.T
	}
}

func (m *Model) setType(c *Command) Answer {
	k := &taskType{}
	if was := m.Types[c.Kind]; was != nil {
		*k = *was
	}
	had := k.settings.Rate
	if had != 0 {
		k.left, k.at = k.bucket(m.T), m.T
	}
	k.settings = c.Changed(k.settings)
	switch rate := k.settings.Rate; {
	case rate == 0:
		k.left, k.at = 0, 0
	case had == 0:
		k.left, k.at = burst(rate), m.T
	default:
		k.left = min(k.left, burst(rate))
	}
	was := m.settingsOf(c.Kind)
	m.Types[c.Kind] = k
	if !k.settings.Equal(&was) {
		m.tell("type_changed", nil, byWhom(c.Kind, c.By))
	}
	seen := m.See(c.Kind)
	return Answer{Kind: &seen}
}

// Changed returns the settings with those changed that the command sets.
func (c *Command) Changed(s Settings) Settings {
	n := &c.Settings
	if c.Changes.Paused {
		s.Paused = n.Paused
	}
	if c.Changes.Claims {
		s.Claims = n.Claims
	}
	if c.Changes.Rate {
		s.Rate = n.Rate
	}
	if c.Changes.Lease {
		s.LeaseMS = n.LeaseMS
	}
	if c.Changes.Attempts {
		s.Limited, s.Max = n.Limited, n.Max
	}
	if c.Changes.Backoff {
		s.Backoff = n.Backoff
	}
	if c.Changes.Keep {
		s.KeepMS = n.KeepMS
	}
	return s
}

// See returns what an answer shows of the type.
func (m *Model) See(name string) TypeSeen {
	seen := TypeSeen{Name: name, Settings: m.settingsOf(name), Counts: map[string]int64{}}
	for _, t := range m.Tasks {
		if t == nil || t.Kind != name {
			continue
		}
		seen.Counts[t.Status]++
		if t.Status == Pending && seen.Counts[Pending] == 1 {
			seen.AgeMS = max(m.T-t.CreatedAt, 0)
		}
	}
	return seen
}
