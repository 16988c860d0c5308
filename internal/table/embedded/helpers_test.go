package embedded_test

import (
	"testing"

	"daybook/internal/table"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func merge(row string, value []byte) table.Operation {
	return table.Operation{Row: row, Properties: []table.Property{{Name: "d_a", Value: value}}}
}

func put(t *testing.T, s table.Service, name, partition, row, value string) {
	t.Helper()
	must(t, s.Transact(t.Context(), name, partition, []table.Operation{merge(row, []byte(value))}))
}

func get(t *testing.T, s table.Service, name, partition, row string) string {
	t.Helper()
	e, err := s.Get(t.Context(), name, table.Key{Partition: partition, Row: row}, nil)
	must(t, err)
	return string(e.Property("d_a"))
}

func all(t *testing.T, s table.Service, name, partition string) (found []table.Entity) {
	t.Helper()
	q := table.Query{Partition: partition}
	for {
		page, err := s.Query(t.Context(), name, q)
		must(t, err)
		found = append(found, page.Entities...)
		if q.Token = page.Next; q.Token == "" {
			return found
		}
	}
}

func count(t *testing.T, s table.Service, name, partition string) int {
	t.Helper()
	return len(all(t, s, name, partition))
}
