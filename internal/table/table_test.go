package table_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"daybook/internal/table"
	"daybook/internal/table/tabletest"
)

func TestEntitySize(t *testing.T) {
	for _, tt := range []struct {
		key        table.Key
		properties []table.Property
		want       int
	}{
		{table.Key{Partition: "5e", Row: "row"}, nil, 4 + 2*5},
		{table.Key{Partition: "5e", Row: "row"}, []table.Property{{Name: "d_a"}}, 4 + 2*5 + 8 + 2*3 + 4},
		{table.Key{Partition: "5e", Row: "row"}, []table.Property{{Name: "d_a", Value: make([]byte, 100)}, {Name: "h00_a", Value: make([]byte, 7)}},
			4 + 2*5 + (8 + 2*3 + 4 + 100) + (8 + 2*5 + 4 + 7)},
	} {
		if got := table.EntitySize(tt.key, tt.properties); got != tt.want {
			t.Errorf("%v with %d properties has %d bytes, want %d", tt.key, len(tt.properties), got, tt.want)
		}
	}
}

// OperationSize is no less than what travels: the operation as clients write it, in a change set of a batch.
func TestOperationSizeIsABound(t *testing.T) {
	id := strings.Repeat("7c9ee0e2", 4)
	account := "https://" + strings.Repeat("a", 24) + ".table.core.windows.net/" + strings.Repeat("t", 63)
	for _, n := range []int{1, 26, 252} {
		for _, size := range []int{0, 1, 2, 3, 100, 4000} {
			op := table.Operation{Row: id + "-479212"}
			body := fmt.Sprintf(`{"PartitionKey":"5e-acme","RowKey":"%s"`, op.Row)
			for i := range n {
				p := table.Property{Name: fmt.Sprintf("h%02d_abcdefgh_%d", i%26, i), Value: make([]byte, size)}
				op.Properties = append(op.Properties, p)
				body += fmt.Sprintf(`,"%s@odata.type":"Edm.Binary","%s":"%s"`, p.Name, p.Name, base64.StdEncoding.EncodeToString(p.Value))
			}
			travels := fmt.Sprintf("--changeset_%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
				"PATCH %s(PartitionKey='5e-acme',RowKey='%s') HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n"+
				"Content-Type: application/json\r\nDataServiceVersion: 3.0\r\nContent-Length: %d\r\n\r\n%s}\r\n",
				id+"----", account, op.Row, len(body)+1, body)
			if got := table.OperationSize("5e-acme", op); got < len(travels) {
				t.Errorf("%d properties of %d bytes: %d bytes travel, OperationSize says %d", n, size, len(travels), got)
			}
		}
	}
}

func TestErrorsSayWhat(t *testing.T) {
	op := func(row string, properties ...table.Property) table.Operation {
		return table.Operation{Row: row, Properties: properties}
	}
	ok := table.Property{Name: "d_a", Value: []byte("v")}
	for _, tt := range []struct {
		ops  []table.Operation
		says string
	}{
		{[]table.Operation{op("a", ok), op("b", table.Property{Name: "d-a"})}, `operation 1 of the transaction: row "b": property name "d-a"`},
		{[]table.Operation{op("a", ok), op("b", ok), op("a", ok)}, `operation 2 of the transaction: row "a" is in the transaction twice`},
		{[]table.Operation{op("a/b", ok)}, `operation 0 of the transaction: row key "a/b" holds '/'`},
		{nil, "a transaction of 0 operations: 1 to 100"},
	} {
		err := table.CheckTransaction("5", tt.ops)
		if !errors.Is(err, table.ErrLimit) || !strings.HasPrefix(err.Error(), tt.says) {
			t.Errorf("the error is %q, want %q…", err, tt.says)
		}
	}
	// A label set must never be a key; if it is one day, the message stays of a size.
	err := table.CheckKey(table.Key{Partition: "5", Row: strings.Repeat("x", 1<<20)})
	if !errors.Is(err, table.ErrLimit) || len(err.Error()) > 1000 {
		t.Errorf("a key of a megabyte gives an error of %d bytes", len(err.Error()))
	}
}

func TestEntityProperty(t *testing.T) {
	e := table.Entity{Properties: []table.Property{{Name: "a", Value: []byte{}}, {Name: "b", Value: []byte("v")}}}
	if v := e.Property("a"); v == nil {
		t.Error("the empty value is nil")
	}
	if v := e.Property("b"); string(v) != "v" {
		t.Errorf("b is %q", v)
	}
	if v := e.Property("c"); v != nil {
		t.Errorf("c is %q", v)
	}
}

func TestCounted(t *testing.T) {
	var totals table.Totals
	faults := tabletest.Faulty(tabletest.NewModel())
	s := table.Counted(faults, &totals)
	var cost table.Cost
	ctx := table.WithCost(t.Context(), &cost)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(s.Create(ctx, "one"))
	var ops []table.Operation
	for _, row := range []string{"a", "b", "c"} {
		ops = append(ops, table.Operation{Row: row, Properties: []table.Property{{Name: "d_a", Value: []byte("12345")}, {Name: "h00_a", Value: []byte("v")}}})
	}
	ok(s.Transact(ctx, "one", "5", ops))
	_, err := s.Get(ctx, "one", table.Key{Partition: "5", Row: "a"}, []string{"d_a"})
	ok(err)
	_, err = s.Get(ctx, "one", table.Key{Partition: "5", Row: "none"}, nil)
	if !errors.Is(err, table.ErrNotFound) {
		t.Error(err)
	}
	page, err := s.Query(ctx, "one", table.Query{Partition: "5", Limit: 2, Project: []string{"h00_a"}})
	ok(err)
	_, err = s.Query(ctx, "one", table.Query{Partition: "5", Token: page.Next})
	ok(err)
	faults.Add(tabletest.Fault{Method: tabletest.Get, Call: 1})
	if _, err := s.Get(context.Background(), "one", table.Key{Partition: "5", Row: "a"}, nil); !errors.Is(err, tabletest.ErrInjected) {
		t.Error(err) // counted into the totals, and into no one's cost
	}
	type numbers struct{ points, ranges, rows, bytes int64 }
	of := func(c *table.Cost) numbers {
		return numbers{c.PointReads.Load(), c.RangeReads.Load(), c.RowsScanned.Load(), c.Bytes.Load()}
	}
	if got, want := of(&cost), (numbers{2, 2, 3, 8 + 2*6 + 14}); got != want {
		t.Errorf("the reads cost %+v, want %+v", got, want)
	}
	if got, want := of(&totals.Reads), (numbers{3, 2, 3, 8 + 2*6 + 14}); got != want {
		t.Errorf("all reads cost %+v, want %+v", got, want)
	}
	if tx, n, bytes, failed := totals.Transactions.Load(), totals.Operations.Load(), totals.BytesWritten.Load(), totals.Failures.Load(); tx != 1 || n != 3 || bytes != 3*14 || failed != 1 {
		t.Errorf("%d transactions of %d operations, %d bytes, %d failures", tx, n, bytes, failed)
	}
}

// The wrapper changes nothing.
func TestCountedConforms(t *testing.T) {
	var totals table.Totals
	tabletest.Run(t, func(*testing.T) table.Service { return table.Counted(tabletest.NewModel(), &totals) })
}
