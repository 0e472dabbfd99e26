package hotjson

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// each calls test with values of a type that have one field set, and with one that has all set except those in
// fallback.
func each(t *testing.T, zero any, fallback map[string]bool, test func(v any)) {
	t.Helper()
	of := reflect.TypeOf(zero)
	all := reflect.New(of)
	test(all.Interface())
	for i := range of.NumField() {
		for _, value := range valuesOf(t, of.Field(i).Type) {
			one := reflect.New(of)
			one.Elem().Field(i).Set(value)
			test(one.Interface())
			if !fallback[of.Field(i).Name] {
				all.Elem().Field(i).Set(value)
			}
		}
	}
	test(all.Interface())
}

// valuesOf returns values of a type in package wire.
func valuesOf(t *testing.T, of reflect.Type) []reflect.Value {
	t.Helper()
	var values []any
	switch reflect.Zero(of).Interface().(type) {
	case string:
		values = []any{"a\"<é>\u2028\\\x01", "\xff", "plain"}
	case []string:
		values = []any{[]string{}, []string{"mail"}, []string{"mail", "a&b"}}
	case int, int32, int64, uint64:
		values = []any{reflect.ValueOf(7).Convert(of).Interface()}
	case bool:
		values = []any{true}
	case []byte:
		values = []any{[]byte{}, []byte{0, 255, 254}}
	case *int64:
		values = []any{new(int64)}
	case json.RawMessage:
		values = []any{json.RawMessage(`{"a":1}`)}
	case []wire.NewTask:
		values = []any{[]wire.NewTask{{TaskType: "mail"}}}
	case *wire.Claim:
		values = []any{&wire.Claim{WorkerID: "w"}, &wire.Claim{WorkerID: "w", TaskTypes: []string{"mail"}, Limit: 2, ClaimRequestID: "r"}}
	default:
		t.Fatalf("no values of %v", of)
	}
	all := make([]reflect.Value, len(values))
	for i, v := range values {
		all[i] = reflect.ValueOf(v)
	}
	return all
}

// Requests are encoded as by encoding/json, field by field, so that a field added to package wire is noticed.
func TestRequests(t *testing.T) {
	t.Parallel()
	same := func(v any, got []byte, err error) {
		t.Helper()
		want, wantErr := json.Marshal(v)
		if wantErr != nil || err != nil || string(got) != string(want) {
			t.Errorf("%+v: %s, %v; want %s, %v", v, got, err, want, wantErr)
		}
	}
	rare := map[string]bool{"Submit": true, "Progress": true}
	each(t, wire.Settle{}, rare, func(v any) { got, err := Settle(v.(*wire.Settle)); same(v, got, err) })
	each(t, wire.Claim{}, nil, func(v any) { got, err := Claim(v.(*wire.Claim)); same(v, got, err) })
}

func BenchmarkSettle(b *testing.B) {
	s := &wire.Settle{WorkerID: "host-17-abcdefghij", ClaimToken: 17, Claim: &wire.Claim{WorkerID: "host-17-abcdefghij", TaskTypes: []string{"mail"}, ClaimRequestID: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}}
	b.Run("hot", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			Settle(s)
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			json.Marshal(s)
		}
	})
}
