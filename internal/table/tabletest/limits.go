package tabletest

import (
	"fmt"
	"slices"
	"strings"

	"daybook/internal/table"
)

func (s *suite) transactions() {
	var ops []table.Operation
	for i := range table.MaxOperations + 1 {
		ops = append(ops, merge(fmt.Sprintf("r%03d", i), "d_a", "v"))
	}
	s.refused(-1)
	s.refused(-1, ops...)
	s.same(s.query(table.Query{}), nil)
	s.write(ops[:table.MaxOperations]...)
	if got := s.query(table.Query{}); len(got) != table.MaxOperations {
		s.Errorf("%d rows", len(got))
	}
	s.refused(2, merge("x", "d_a", "v"), merge("y", "d_a", "v"), merge("x", "d_b", "v"))
	s.refused(1, remove("r000"), merge("r000", "d_b", "v"))
	s.refused(0, merge("x"))
	s.refused(0, replace("x"))
	s.refused(1, merge("y", "d_a", "v"), operation(table.Delete, "x", []string{"d_a", "v"}))
	s.refused(0, operation(table.Delete+1, "x", []string{"d_a", "v"}))
	s.has("r000", "d_a=v")
	s.has("x", "")
	s.has("y", "")
	// The three kinds in one, not in the order of their rows.
	s.write(remove("r002"), replace("r001", "d_b", "v"), merge("r000", "d_b", "v"), merge("a", "d_a", "v"))
	s.same(s.query(table.Query{To: "r003"}), []string{"a: d_a=v", "r000: d_a=v d_b=v", "r001: d_b=v"})
}

func (s *suite) keys() {
	longest := strings.Repeat("k", table.MaxKey/2)
	s.ok(s.Transact(s.Context(), s.table, longest, []table.Operation{merge(longest, "d_a", "v"), merge("0123-_az", "d_a", "v")}))
	e, err := s.Get(s.Context(), s.table, table.Key{Partition: longest, Row: longest}, nil)
	s.ok(err)
	if e.Key.Partition != longest || e.Key.Row != longest || string(e.Property("d_a")) != "v" {
		s.Errorf("the entity with the longest key is %v", e)
	}
	if got := s.query(table.Query{Partition: longest, From: longest}); len(got) != 1 {
		s.Errorf("from the longest row on: %q", got)
	}
	for _, bad := range []string{"", longest + "k", strings.Repeat("é", 513), strings.Repeat("😀", 257), "a/b", `a\b`, "a#b", "a?b", "it's",
		"a\tb", "a\nb", "\x00", "a\x00b", "\x1f", "\x7f", "\u0080", "a\u009f", "a\xffb"} {
		s.is(s.Transact(s.Context(), s.table, bad, []table.Operation{merge("r", "d_a", "v")}), table.ErrLimit)
		s.refused(1, merge("r", "d_a", "v"), merge(bad, "d_a", "v"))
		s.refused(0, remove(bad))
		for _, key := range []table.Key{{Partition: bad, Row: "r"}, {Partition: "5", Row: bad}} {
			_, err := s.Get(s.Context(), s.table, key, nil)
			s.is(err, table.ErrLimit)
		}
		queries := []table.Query{{Partition: bad}}
		if bad != "" {
			queries = append(queries, table.Query{Partition: "5", From: bad}, table.Query{Partition: "5", To: bad})
		}
		for _, q := range queries {
			_, err := s.Query(s.Context(), s.table, q)
			s.is(err, table.ErrLimit)
		}
	}
	s.has("r", "")
}

func (s *suite) propertyNames() {
	longest := strings.Repeat("p", table.MaxName)
	s.write(merge("r", longest, "long", "_", "underscore", "a", "short", "h00_a_1", "part"))
	s.has("r", "_=underscore a=short h00_a_1=part "+longest+"=long")
	for _, bad := range []string{"", longest + "p", "0h", "9", "h-00", "-", "a.b", "a b", " a", "a ", "a\x00", "a'b", "a:b", "a@odata", "é", "ə",
		"PartitionKey", "RowKey", "Timestamp"} {
		s.refused(1, merge("x", "d_a", "v"), merge("r", "d_a", "v", bad, "v"))
		s.refused(0, replace("r", bad, "v"))
	}
	s.refused(0, merge("r", "d_a", "v", "d_b", "v", "d_a", "v"))
	s.refused(0, merge("r", "d_a", "v", "d_a", "w"))
	s.has("x", "")
	s.has("r", "_=underscore a=short h00_a_1=part "+longest+"=long")
}

// numbered makes n properties with values of a size.
func numbered(prefix string, n, size int) (pairs []string) {
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("%s%03d", prefix, i), strings.Repeat(string(rune('a'+i%26)), size))
	}
	return pairs
}

func (s *suite) manyProperties() {
	s.refused(0, merge("r", numbered("p", table.MaxProperties+1, 1)...))
	s.refused(0, replace("r", numbered("p", table.MaxProperties+1, 1)...))
	s.has("r", "")
	s.write(merge("r", numbered("p", table.MaxProperties, 1)...))
	s.write(merge("r", numbered("p", table.MaxProperties, 2)...)) // the same again are no more
	s.write(replace("r", numbered("q", table.MaxProperties, 1)...))
	s.count(table.MaxProperties)
	if s.emulator {
		return
	}
	s.refused(0, merge("r", "one_more", "v"))
	s.refused(1, merge("x", "d_a", "v"), merge("r", numbered("p", 2, 1)...))
	s.count(table.MaxProperties)
	s.has("x", "")
	// With room again.
	s.write(replace("r", numbered("p", 251, 1)...))
	s.write(merge("r", "one_more", "v"))
	s.refused(0, merge("r", "two_more", "v"))
	s.write(remove("r"))
	s.write(merge("r", "one_more", "v"))
	s.has("r", "one_more=v")
}

// count looks at how many properties the entity r has.
func (s *suite) count(properties int) {
	s.Helper()
	e, err := s.Get(s.Context(), s.table, table.Key{Partition: "5", Row: "r"}, nil)
	s.ok(err)
	if len(e.Properties) != properties {
		s.Errorf("%d properties, want %d", len(e.Properties), properties)
	}
}

func (s *suite) largeProperty() {
	s.refused(0, merge("r", numbered("p", 1, table.MaxValue+1)...))
	s.refused(1, merge("x", "d_a", "v"), replace("r", numbered("p", 1, table.MaxValue+1)...))
	s.has("r", "")
	s.has("x", "")
	s.write(merge("r", numbered("p", 2, table.MaxValue)...))
	e, err := s.Get(s.Context(), s.table, table.Key{Partition: "5", Row: "r"}, nil)
	s.ok(err)
	s.same([]string{describe(e)}, []string{describe(table.Entity{Key: e.Key, Properties: merge("r", numbered("p", 2, table.MaxValue)...).Properties})})
}

func (s *suite) largeEntity() {
	key := table.Key{Partition: "5", Row: "r"}
	// Fifteen full properties and one with what is left.
	pairs := numbered("p", 15, table.MaxValue)
	rest := table.MaxEntity - table.EntitySize(key, merge("r", pairs...).Properties) - table.PropertySize("rest", 0)
	full := append(slices.Clone(pairs), "rest", strings.Repeat("r", rest))
	over := append(append([]string{}, pairs...), "rest", strings.Repeat("r", rest+1))
	s.refused(0, merge("r", over...))
	s.refused(1, merge("x", "d_a", "v"), replace("r", over...))
	s.has("r", "")
	s.write(merge("r", full...))
	s.count(16)
	s.write(merge("r", "rest", "shorter"))
	s.write(replace("r", full...)) // only what replaces counts
	s.write(merge("r", "rest", strings.Repeat("s", rest)))
	s.count(16)
	if s.emulator {
		return
	}
	s.refused(0, merge("r", "one_more", ""))
	s.refused(0, merge("r", "rest", strings.Repeat("s", rest+1)))
	s.refused(1, merge("x", "d_a", "v"), merge("r", numbered("q", 1, table.MaxValue)...))
	s.count(16)
	s.has("x", "")
	s.write(merge("r", "rest", "")) // with room again
	s.write(merge("r", "one_more", ""))
	s.count(17)
}

func (s *suite) largeTransaction() {
	ops := func(n, size int) (ops []table.Operation) {
		for i := range n {
			ops = append(ops, merge(fmt.Sprintf("r%02d", i), "d_a", strings.Repeat(string(rune('a'+i%26)), size)))
		}
		return ops
	}
	s.is(s.Transact(s.Context(), s.table, "5", ops(100, 32<<10)), table.ErrLimit) // 3.1 MiB, and 4.2 in base64
	s.is(s.Transact(s.Context(), s.table, "5", ops(52, 64<<10)), table.ErrLimit)
	s.same(s.query(table.Query{}), nil)
	s.write(ops(100, 30_000)...)
	s.write(ops(45, 64<<10)...)
	var want []string
	for i, op := range ops(100, 30_000) {
		if i < 45 {
			op = ops(i+1, 64<<10)[i]
		}
		want = append(want, describe(table.Entity{Key: table.Key{Row: op.Row}, Properties: op.Properties}))
	}
	s.same(s.query(table.Query{}), want)
}

// atomic refuses the third of five operations, for every reason there is.
func (s *suite) atomic() {
	s.write(merge("a", "d_a", "old"), merge("b", "d_a", "old"), merge("d", "d_a", "old"))
	s.write(merge("full", numbered("p", table.MaxProperties, 1)...))
	s.write(merge("large", numbered("p", 15, table.MaxValue)...))
	before := s.query(table.Query{})
	reasons := []table.Operation{
		merge("it's", "d_a", "v"),
		merge("c", "0", "v"),
		merge("c", "d_a", "v", "d_a", "v"),
		merge("c", numbered("p", 1, table.MaxValue+1)...),
		merge("c", numbered("p", table.MaxProperties+1, 1)...),
		merge("c"),
		merge("a", "d_a", "twice"),
	}
	if !s.emulator {
		reasons = append(reasons,
			merge("full", "one_more", "v"),
			merge("large", numbered("q", 1, table.MaxValue)...))
	}
	for _, third := range reasons {
		s.refused(2, merge("a", "d_a", "new", "d_b", "new"), remove("b"), third, replace("d", "d_b", "new"), merge("e", "d_a", "new"))
		s.same(s.query(table.Query{}), before)
		// The others behind it in row order, and in front.
		s.refused(2, merge("z1", "d_a", "new"), remove("a"), third, merge("z3", "d_a", "new"), remove("d"))
		s.same(s.query(table.Query{}), before)
	}
}
