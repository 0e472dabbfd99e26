package fuzz

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
	"strings"
)

// odd lists values that parsers trip over, as JSON.
var odd = []string{
	`null`, `true`, `false`, `0`, `-1`, `-0`, `1`, `1.5`, `1e400`, `-1e400`, `9007199254740991`, `9007199254740992`, `18446744073709551616`,
	`9223372036854775807`, `-9223372036854775808`, `0.1e-999`, `""`, `" "`, `"\u0000"`, `"\ud800"`, `"é"`, `"a/b"`, `"%2e%2e"`, `"` + strings.Repeat("x", 200) + `"`,
	`[]`, `{}`, `[[]]`, `[null]`, `{"a":{}}`, `{"":0}`, `"2029-01-02T03:04:05Z"`, `"9999-12-31T23:59:60Z"`, `"0000-00-00"`, `"AA=="`, `"AA"`, `"nobody"`,
}

// mutate returns a changed copy of a body: a value, a name or the structure of
// its JSON, or its bytes.
func mutate(rng *rand.Rand, body []byte) []byte {
	if rng.Intn(3) == 0 {
		return mutateBytes(rng, body)
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return mutateBytes(rng, body)
	}
	for range 1 + rng.Intn(3) {
		v = mutateValue(rng, v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return mutateBytes(rng, body)
	}
	return b
}

// mutateValue changes something in v, at any depth, and returns it.
func mutateValue(rng *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || rng.Intn(8) == 0 {
			v["unheard_of"] = oddValue(rng)
			return v
		}
		name := names[rng.Intn(len(names))]
		switch rng.Intn(8) {
		case 0:
			delete(v, name)
		case 1:
			v[strings.ToUpper(name)] = v[name]
		case 2:
			v[name] = deep(rng, v[name])
		default:
			v[name] = mutateValue(rng, v[name])
		}
		return v
	case []any:
		if len(v) == 0 || rng.Intn(4) == 0 {
			return append(v, oddValue(rng))
		}
		if rng.Intn(8) == 0 { // many
			for range rng.Intn(1100) {
				v = append(v, v[0])
			}
			return v
		}
		i := rng.Intn(len(v))
		v[i] = mutateValue(rng, v[i])
		return v
	case string:
		if rng.Intn(2) == 0 {
			return string(mutateBytes(rng, []byte(v)))
		}
	}
	return oddValue(rng)
}

func oddValue(rng *rand.Rand) any { return json.RawMessage(odd[rng.Intn(len(odd))]) }

// deep wraps v in as many arrays as the contract allows, or in a few more.
func deep(rng *rand.Rand, v any) any {
	for range 50 + rng.Intn(30) {
		v = []any{v}
	}
	return v
}

// mutateBytes changes, cuts, doubles or adds some bytes of a copy.
func mutateBytes(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + rng.Intn(4) {
		if len(b) == 0 {
			return randomBytes(rng, 16)
		}
		at := rng.Intn(len(b))
		switch rng.Intn(5) {
		case 0:
			b[at] ^= 1 << rng.Intn(8)
		case 1:
			b = b[:at]
		case 2:
			b = append(b[:at:at], append(randomBytes(rng, 8), b[at:]...)...)
		case 3:
			b = append(b[:at:at], append([]byte(odd[rng.Intn(len(odd))]), b[at:]...)...)
		default:
			to := at + rng.Intn(len(b)-at)
			b = append(b[:to:to], b[at:]...)
		}
	}
	return b
}

// randomBytes returns 1 to most random bytes.
func randomBytes(rng *rand.Rand, most int) []byte {
	b := make([]byte, 1+rng.Intn(most))
	for i := range b {
		b[i] = byte(rng.Intn(256))
	}
	return b
}
