package tabletest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"daybook/internal/table"
)

// rowsLikePrefixes are rows of which many begin with another one.
var rowsLikePrefixes = []string{"0", "a", "ab", "ab-", "ab-c", "ab-c-00", "ab0", "ab_", "abc", "b", "ba", "zz"}

func (s *suite) ranges() {
	for i := range rowsLikePrefixes {
		s.write(merge(rowsLikePrefixes[(i*5)%len(rowsLikePrefixes)], "d_a", "v"))
	}
	s.ok(s.Transact(s.Context(), s.table, "5a", []table.Operation{merge("other", "d_a", "v")}))
	s.ok(s.Transact(s.Context(), s.table, "4", []table.Operation{merge("other", "d_a", "v")}))
	bounds := append([]string{"", "-", "A", "aa", "ab-b", "ab-d", "az", "zzz"}, rowsLikePrefixes...)
	for _, from := range bounds {
		for _, to := range bounds {
			var want []string
			for _, row := range rowsLikePrefixes {
				if row >= from && (to == "" || row < to) {
					want = append(want, row+": d_a=v")
				}
			}
			s.same(s.query(table.Query{From: from, To: to}), want)
		}
	}
	s.same(s.query(table.Query{Partition: "none", From: "a", To: "b"}), nil)
	s.same(s.query(table.Query{Partition: "5a"}), []string{"other: d_a=v"})
	// The newest of the pages that lie behind a series' row.
	page, err := s.Query(s.Context(), s.table, table.Query{Partition: "5", From: "ab-", To: "ab-d", Limit: 1})
	s.ok(err)
	if len(page.Entities) > 1 || len(page.Entities) == 1 && page.Entities[0].Key.Row != "ab-" {
		s.Errorf("the first row is %v", page.Entities)
	}
	for _, limit := range []int{1, 2, 5, len(rowsLikePrefixes) - 1, len(rowsLikePrefixes), 5000} {
		if got := s.query(table.Query{Limit: limit}); len(got) != len(rowsLikePrefixes) {
			s.Errorf("pages of %d rows give %q", limit, got)
		}
	}
}

// fill writes n rows of partition "5" and gives their descriptions when d_a is projected.
func (s *suite) fill(n int) (want []string) {
	s.Helper()
	var ops []table.Operation
	for i := range n {
		row := fmt.Sprintf("row%05d", i)
		ops = append(ops, merge(row, "d_a", fmt.Sprint(i), "h00_b", "other"))
		want = append(want, fmt.Sprintf("%s: d_a=%d", row, i))
		if len(ops) == table.MaxOperations || i == n-1 {
			s.write(ops...)
			ops = nil
		}
	}
	return want
}

func (s *suite) pages() {
	want := s.fill(2500)
	s.ok(s.Transact(s.Context(), s.table, "5a", []table.Operation{merge("row00000", "d_a", "v")}))
	project := []string{"d_a"}
	for _, limit := range []int{0, 400, table.MaxPage, 1 << 20} {
		s.same(s.query(table.Query{Limit: limit, Project: project}), want)
	}
	s.same(s.query(table.Query{From: "row00100", To: "row00150", Limit: 7, Project: project}), want[100:150])
	s.same(s.query(table.Query{From: "row01400", To: "row02450", Project: project}), want[1400:2450])
	if got := s.query(table.Query{Project: []string{"none"}, Limit: 999}); len(got) != 2500 {
		s.Errorf("%d rows when nothing is projected", len(got))
	}
}

// movingPages changes the table between pages: what was there all along is given once.
func (s *suite) movingPages() {
	want := s.fill(50)
	q := table.Query{Partition: "5", Project: []string{"d_a"}, Limit: 10}
	var got []string
	for changed := false; ; {
		page, err := s.Query(s.Context(), s.table, q)
		s.ok(err)
		for _, e := range page.Entities {
			got = append(got, describe(e))
		}
		if page.Next == "" {
			break
		}
		q.Token = page.Next
		if !changed && len(got) > 0 {
			changed = true
			// The next row goes, the one behind changes, a new one comes in front of all.
			next := len(got)
			s.write(remove(fmt.Sprintf("row%05d", next)), merge(fmt.Sprintf("row%05d", next+1), "d_a", "changed"), merge("a", "d_a", "new"))
			want[next+1] = fmt.Sprintf("row%05d: d_a=changed", next+1)
			want = slices.Delete(want, next, next+1)
		}
	}
	s.same(got, want)
}

// random does the same operations here and in the model.
func (s *suite) random(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	r := &random{suite: s, rng: rng, model: NewModel()}
	r.tables = []string{s.table, s.create(), newName()} // the last one is missing
	for _, name := range r.tables[:2] {
		s.ok(r.model.Create(s.Context(), name))
	}
	for range 400 {
		switch n := rng.IntN(100); {
		case n < 60:
			r.transact()
		case n < 75:
			r.get()
		case n < 97:
			r.query()
		case n < 98:
			s.ok(s.Sync(s.Context()))
		default:
			r.drop()
		}
	}
	for _, name := range r.tables {
		for _, partition := range partitionsLikePrefixes {
			q := table.Query{Partition: partition}
			s.same(readAll(s, s, name, q), readAll(s, r.model, name, q))
		}
	}
}

type random struct {
	*suite
	rng    *rand.Rand
	model  *Model
	tables []string
}

var partitionsLikePrefixes = []string{"5", "5a", "5-acme", "6"}

func pick[T any](r *random, from []T) T { return from[r.rng.IntN(len(from))] }

func (r *random) names(n int) (names []string) {
	all := []string{"d_a", "h00_a", "h00_a_1", "h00_b", "h01_a", "h25_abcd1234", "labels", "x"}
	for _, i := range r.rng.Perm(len(all))[:n] {
		names = append(names, all[i])
	}
	return names
}

func (r *random) transact() {
	r.Helper()
	var ops []table.Operation
	for _, i := range r.rng.Perm(len(rowsLikePrefixes))[:1+r.rng.IntN(6)] {
		op := table.Operation{Kind: pick(r, []table.Kind{table.InsertOrMerge, table.InsertOrMerge, table.InsertOrReplace, table.Delete}), Row: rowsLikePrefixes[i]}
		if op.Kind != table.Delete {
			for _, name := range r.names(1 + r.rng.IntN(4)) {
				value := make([]byte, pick(r, []int{0, 1, 10, 300, 5000}))
				for i := range value {
					value[i] = byte(r.rng.Uint32())
				}
				op.Properties = append(op.Properties, table.Property{Name: name, Value: value})
			}
		}
		ops = append(ops, op)
	}
	if r.rng.IntN(10) == 0 { // one of them is refused
		i := r.rng.IntN(len(ops))
		ops[i] = pick(r, []table.Operation{
			merge(ops[i].Row), merge("it's", "d_a", "v"), merge(ops[i].Row, "0", "v"), merge(ops[(i+1)%len(ops)].Row, "x", "v", "x", "v")})
	}
	name, partition := pick(r, r.tables), pick(r, partitionsLikePrefixes)
	r.alike(r.Transact(r.Context(), name, partition, ops), r.model.Transact(r.Context(), name, partition, ops))
}

// alike wants both errors to be of a kind, and to blame the same operation.
func (r *random) alike(got, want error) {
	r.Helper()
	for _, target := range []error{table.ErrNotFound, table.ErrLimit} {
		if errors.Is(got, target) != errors.Is(want, target) {
			r.Fatalf("the error is %v, want %v", got, want)
		}
	}
	if (got == nil) != (want == nil) {
		r.Fatalf("the error is %v, want %v", got, want)
	}
	var g, w *table.OperationError
	if errors.As(got, &g) != errors.As(want, &w) || g != nil && g.Index != w.Index {
		r.Fatalf("the error is %v, want %v", got, want)
	}
}

func (r *random) project() []string {
	if r.rng.IntN(3) == 0 {
		return nil
	}
	return r.names(r.rng.IntN(4))
}

func (r *random) get() {
	r.Helper()
	name, key, project := pick(r, r.tables), table.Key{Partition: pick(r, partitionsLikePrefixes), Row: pick(r, rowsLikePrefixes)}, r.project()
	got, err := r.Get(r.Context(), name, key, project)
	want, wantErr := r.model.Get(r.Context(), name, key, project)
	r.alike(err, wantErr)
	if err == nil {
		r.same([]string{describe(got)}, []string{describe(want)})
	}
}

func (r *random) query() {
	r.Helper()
	bounds := append([]string{"", "", "", "aa", "ab-b", "zzz"}, rowsLikePrefixes...)
	name := pick(r, r.tables)
	q := table.Query{Partition: pick(r, partitionsLikePrefixes), From: pick(r, bounds), To: pick(r, bounds),
		Project: r.project(), Limit: pick(r, []int{0, 1, 2, 3, 10, 5000})}
	r.same(readAll(r, r, name, q), readAll(r, r.model, name, q))
}

// drop drops a table and makes a new one in its place.
func (r *random) drop() {
	r.Helper()
	i := r.rng.IntN(len(r.tables))
	r.ok(r.Drop(r.Context(), r.tables[i]))
	r.ok(r.model.Drop(r.Context(), r.tables[i]))
	if r.tables[i] = newName(); r.rng.IntN(3) > 0 {
		r.tables[i] = r.create()
		r.ok(r.model.Create(r.Context(), r.tables[i]))
	}
}
