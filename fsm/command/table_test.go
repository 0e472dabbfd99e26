package command

import (
	"reflect"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// Each row is whole, and of the kind that it stands at; and no command is of two rows.
func TestTable_EachRowIsWhole(t *testing.T) {
	t.Parallel()
	rows := map[reflect.Type]Kind{}
	for i := range table {
		k := Kind(i)
		row := k.Row()
		if row == nil {
			continue
		}
		if row.of.kind() != k {
			t.Errorf("row %d is of a command of kind %d", k, row.of.kind())
		}
		if row.Name == "" || row.Level == 0 || row.Level > record.FeatureLevel || row.Lane >= LaneCount {
			t.Errorf("the row of %T is not whole: %+v", row.of, row)
		}
		if row.Op && k >= KindTick {
			t.Errorf("%T is an op of a batch, and changes no task", row.of)
		}
		if !reflect.ValueOf(row.of).IsZero() {
			t.Errorf("the row of %T has a value that is not zero", row.of)
		}
		if other, twice := rows[reflect.TypeOf(row.of)]; twice {
			t.Errorf("%T is in rows %d and %d", row.of, other, k)
		}
		rows[reflect.TypeOf(row.of)] = k
	}
}
