package sim

import "cmp"

// taskType is what is set of a task type.
type taskType struct {
	settings settings
	// left is what its rate limit lets be claimed, in billionths of a claim, as
	// of the calendar at.
	left, at int64
}

// typeSeen is what an answer shows of a type.
type typeSeen struct {
	name     string
	settings settings
	counts   map[string]int64
	ageMS    int64 // of the oldest task that is pending
}

// oneClaim is a claim in the unit of a bucket.
const oneClaim = 1_000_000_000

func (m *model) settingsOf(name string) settings {
	if k := m.types[name]; k != nil {
		return k.settings
	}
	return settings{}
}

// inForce returns the type's settings, with the server's where they say nothing.
func (m *model) inForce(name string) settings {
	return m.settingsOf(name).or(&m.defaults)
}

// or returns the settings, with those of d where they say nothing.
func (s settings) or(d *settings) settings {
	s.leaseMS, s.keepMS = cmp.Or(s.leaseMS, d.leaseMS), cmp.Or(s.keepMS, d.keepMS)
	s.backoff = cmp.Or(s.backoff, d.backoff)
	if !s.limited {
		s.limited, s.max = d.limited, d.max
	}
	return s
}

// setDefaults changes the server's defaults.
func (m *model) setDefaults(c *command) {
	was := m.defaults
	m.defaults = c.changed(was)
	if !m.defaults.equal(&was) {
		m.tell("defaults_changed", nil, byWhom("", c.by))
	}
}

// burst is what the bucket of a rate holds: a second's worth, one claim at least.
func burst(rate int64) int64 { return max(rate*1000, oneClaim) }

// bucket returns what is in the type's bucket at the calendar t.
func (k *taskType) bucket(t int64) int64 {
	return min(k.left+max(t-k.at, 0)*k.settings.rate, burst(k.settings.rate))
}

// limited reports whether a limit of the type forbids a claim at t.
func (m *model) limited(name string, t int64) bool {
	k := m.types[name]
	return k != nil && (m.crowded(name) || k.settings.rate != 0 && k.bucket(t) < oneClaim)
}

// crowded reports whether as many claims of the type live as may.
func (m *model) crowded(name string) bool {
	most := m.settingsOf(name).claims
	if most == 0 {
		return false
	}
	live := int32(0)
	for _, t := range m.tasks {
		if t != nil && t.kind == name && t.status == claimed {
			live++
		}
	}
	return live >= most
}

// spend takes a claim out of the type's bucket.
func (m *model) spend(name string) {
	if k := m.types[name]; k != nil && k.settings.rate != 0 {
		k.left, k.at = k.bucket(m.t)-oneClaim, m.t
	}
}

func (m *model) setType(c *command) answer {
	k := &taskType{}
	if was := m.types[c.kind]; was != nil {
		*k = *was
	}
	had := k.settings.rate
	if had != 0 {
		k.left, k.at = k.bucket(m.t), m.t
	}
	k.settings = c.changed(k.settings)
	switch rate := k.settings.rate; {
	case rate == 0:
		k.left, k.at = 0, 0
	case had == 0:
		k.left, k.at = burst(rate), m.t
	default:
		k.left = min(k.left, burst(rate))
	}
	was := m.settingsOf(c.kind)
	m.types[c.kind] = k
	if !k.settings.equal(&was) {
		m.tell("type_changed", nil, byWhom(c.kind, c.by))
	}
	seen := m.see(c.kind)
	return answer{kind: &seen}
}

// changed returns the settings with those changed that the command sets.
func (c *command) changed(s settings) settings {
	n := &c.settings
	if c.changes.paused {
		s.paused = n.paused
	}
	if c.changes.claims {
		s.claims = n.claims
	}
	if c.changes.rate {
		s.rate = n.rate
	}
	if c.changes.lease {
		s.leaseMS = n.leaseMS
	}
	if c.changes.attempts {
		s.limited, s.max = n.limited, n.max
	}
	if c.changes.backoff {
		s.backoff = n.backoff
	}
	if c.changes.keep {
		s.keepMS = n.keepMS
	}
	return s
}

// see returns what an answer shows of the type.
func (m *model) see(name string) typeSeen {
	seen := typeSeen{name: name, settings: m.settingsOf(name), counts: map[string]int64{}}
	for _, t := range m.tasks {
		if t == nil || t.kind != name {
			continue
		}
		seen.counts[t.status]++
		if t.status == pending && seen.counts[pending] == 1 {
			seen.ageMS = max(m.t-t.createdAt, 0)
		}
	}
	return seen
}
