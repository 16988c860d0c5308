package keys_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"

	"daybook/internal/series"
	"daybook/internal/table"
	"daybook/keys"
)

var (
	ids     = rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) series.ID { return series.ID(b) })
	anyDay  = rapid.Map(rapid.Int32(), func(d int32) series.Day { return series.Day(d) })
	keptDay = rapid.Map(rapid.Int32Range(int32(keys.FirstDay), int32(keys.LastDay)), func(d int32) series.Day { return series.Day(d) })
	hours   = rapid.Map(rapid.Int32Range(-1<<31+24, 1<<31-1), func(h int32) series.Hour { return series.Hour(h) })
	buckets = rapid.SampledFrom([]keys.Buckets{16, 256, 4096})
	tenants = rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[0-9a-z_-]{1,64}`))
	writers = rapid.StringMatching(`[0-9a-z]{1,8}`)
	kinds   = rapid.SampledFrom(series.Kinds[:])
)

func clip(d series.Day) series.Day { return min(max(d, keys.FirstDay), keys.LastDay) }

func TestPagesSortNewestFirst(t *testing.T) {
	id := keys.SeriesID("", up)
	check := func(t rapid.TB, a, b series.Day) {
		t.Helper()
		rows := bytes.Compare([]byte(keys.PageRow(id, a)), []byte(keys.PageRow(id, b)))
		if want := int(clip(b)) - int(clip(a)); rows != sign(want) {
			t.Fatalf("days %d and %d have rows %q and %q", a, b, keys.PageRow(id, a), keys.PageRow(id, b))
		}
	}
	for _, a := range days {
		for _, b := range days {
			check(t, a, b)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := anyDay.Draw(t, "a")
		check(t, a, anyDay.Draw(t, "b"))
		a = keptDay.Draw(t, "kept a")
		check(t, a, keptDay.Draw(t, "kept b"))
		check(t, a, a+1)
	})
}

// A metric's series are neighbours, and a series' rows lie between its own row and the next series'.
func TestRowsOfASeriesAreNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		d, e := anyDay.Draw(t, "d"), anyDay.Draw(t, "e")
		spill := keys.SpillRow(keys.PageRow(a, d), "d_a", rapid.IntRange(0, 99).Draw(t, "n"))
		for _, row := range []keys.Row{keys.SeriesRow(a), keys.PageRow(a, d), spill} {
			for _, other := range []keys.Row{keys.SeriesRow(b), keys.PageRow(b, e)} {
				if a != b && (row < other) != (bytes.Compare(a[:], b[:]) < 0) {
					t.Fatalf("%q and %q are not in the order of their series", row, other)
				}
			}
			if !strings.HasPrefix(string(row), string(keys.SeriesRow(a))) {
				t.Fatalf("%q does not begin with %q", row, keys.SeriesRow(a))
			}
		}
	})
}

// The pieces of a spilled property lie between their page and the next older one, in order.
func TestSpillRowsFollowTheirPage(t *testing.T) {
	id := keys.SeriesID("", up)
	rapid.Check(t, func(t *rapid.T) {
		d := series.Day(rapid.Int32Range(int32(keys.FirstDay)+1, int32(keys.LastDay)).Draw(t, "day"))
		property := keys.DayProperty(kinds.Draw(t, "kind"), writers.Draw(t, "writer"))
		rows := []keys.Row{keys.PageRow(id, d)}
		for n := range 100 {
			rows = append(rows, keys.SpillRow(rows[0], property, n))
		}
		rows = append(rows, keys.PageRow(id, d-1))
		if !slices.IsSorted(rows) || len(slices.Compact(slices.Clone(rows))) != len(rows) {
			t.Fatalf("out of order: %q", rows)
		}
	})
}

// Different tenants, series or days never share an entity.
func TestNothingSharesAnEntity(t *testing.T) {
	type thing struct {
		tenant string
		id     series.ID
		day    series.Day
	}
	things := rapid.Custom(func(t *rapid.T) thing {
		return thing{tenants.Draw(t, "tenant"), ids.Draw(t, "id"), keptDay.Draw(t, "day")}
	})
	rapid.Check(t, func(t *rapid.T) {
		n := buckets.Draw(t, "buckets")
		a := things.Draw(t, "a")
		b := things.Draw(t, "b")
		switch rapid.IntRange(0, 3).Draw(t, "alike") { // two of three alike
		case 0:
			b.tenant, b.id = a.tenant, a.id
		case 1:
			b.id, b.day = a.id, a.day
		case 2:
			b.tenant, b.day = a.tenant, a.day
		}
		key := func(x thing) string {
			return fmt.Sprintf("%s %s", n.Partition(n.Of(x.id), x.tenant), keys.PageRow(x.id, x.day))
		}
		if (a == b) != (key(a) == key(b)) {
			t.Fatalf("%v and %v have the keys %s and %s", a, b, key(a), key(b))
		}
	})
}

// Label sets and tenants which a careless spelling would mix up.
func TestAdversarialSeriesAreDistinct(t *testing.T) {
	values := []string{"", "a", "b", "ab", "a\x00b", "\x01a\x01b", "'", "''", `"`, `\"`, `a="b"`, `{a="b"}`, "/", "//", "\\", "#", "?",
		"%", "%25", "%2F", "%2f", "\t", "\n", " ", "  ", "\u0080", "\xff", "\u0640", "é", "e\u0301", "😀", "😀😀", "A", "-", "_", "5e",
		strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("x", 2<<10), strings.Repeat("x", 2<<10) + "y"}
	var sets []labels.Labels
	for _, v := range values {
		sets = append(sets,
			labels.FromStrings("__name__", "m", "l", v),
			labels.FromStrings("__name__", v, "l", "m"),
			labels.FromStrings("__name__", "m", "l"+v, "x"),
			labels.FromStrings("__name__", "m", "k", v, "l", v),
			labels.FromStrings("__name__", "m", "k", "", "l", "", "m", v+"m"))
	}
	for _, pairs := range [][]string{
		{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"},
		{"a", "b", "c", "d"}, {"a", "bcd"}, {"a", "b", "cd", ""}, {"ab", "cd"},
		{"a", "b\x01c\x01d"}, {"a", "b,c=d"}, {"a", `b",c="d`},
		{"__name__", "ab"}, {"__name__", "a", "b", ""}, {"job", "ab"},
	} {
		sets = append(sets, labels.FromStrings(pairs...))
	}
	seen := map[series.ID]string{}
	rows := map[string]string{}
	spelled := map[string]bool{}
	for _, tenant := range []string{"", "a", "ab", "a-b", "a_b", "5e", "5e-a", strings.Repeat("t", 64)} {
		for _, ls := range sets {
			name := fmt.Sprintf("%q %q", tenant, flat(ls))
			if spelled[name] {
				continue // the same set twice in the table above
			}
			spelled[name] = true
			id := keys.SeriesID(tenant, ls)
			if other, ok := seen[id]; ok {
				t.Errorf("%.80s and %.80s share the id %v", name, other, id)
			}
			seen[id] = name
			key := fmt.Sprintf("%s %s", keys.Buckets(16).Partition(keys.Buckets(16).Of(id), tenant), keys.PageRow(id, 20787))
			if other, ok := rows[key]; ok {
				t.Errorf("%.80s and %.80s share the entity %s", name, other, key)
			}
			rows[key] = name
			if !onlyKeyBytes(key) {
				t.Errorf("%.80s has the key %q", name, key)
			}
		}
	}
}

func TestSeriesIDsAreDistinctAndStable(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"a", "b", "ab", "", "'", "/", "%", "\t", "\u0080", "😀", "\x00", "=", ","})
	text := rapid.Map(rapid.SliceOfN(pieces, 0, 4), func(s []string) string { return strings.Join(s, "") })
	sets := rapid.Custom(func(t *rapid.T) labels.Labels {
		return labels.FromMap(rapid.MapOfN(text, text, 0, 4).Draw(t, "labels"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := sets.Draw(t, "a"), sets.Draw(t, "b")
		x, y := tenants.Draw(t, "tenant of a"), tenants.Draw(t, "tenant of b")
		if rapid.Bool().Draw(t, "same tenant") {
			y = x
		}
		same := x == y && slices.Equal(flat(a), flat(b))
		if (keys.SeriesID(x, a) == keys.SeriesID(y, b)) != same {
			t.Fatalf("%q %q and %q %q: the ids are %v and %v", x, flat(a), y, flat(b), keys.SeriesID(x, a), keys.SeriesID(y, b))
		}
		id := keys.SeriesID(x, a)
		if got := fmt.Sprintf("%08x", keys.MetricHash(a.Get("__name__"))); !strings.HasPrefix(id.String(), got) {
			t.Fatalf("%v does not begin with %s, the hash of its metric", id, got)
		}
	})
}

func TestSeriesOfAMetricSpreadOverBuckets(t *testing.T) {
	const n = 20_000
	var count [16]int
	for i := range n {
		count[keys.Buckets(16).Of(keys.SeriesID("", labels.FromStrings("__name__", "up", "instance", fmt.Sprint(i))))]++
	}
	for bucket, c := range count {
		if c < n/16*9/10 || c > n/16*11/10 {
			t.Errorf("bucket %x has %d of %d series", bucket, c, n)
		}
	}
}

// More buckets divide those there are: the first digits of a partition stay.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, tenant := ids.Draw(t, "id"), tenants.Draw(t, "tenant")
		var names []string
		for _, n := range []keys.Buckets{16, 256, 4096} {
			if b := n.Of(id); b < 0 || b >= int(n) {
				t.Fatalf("%d buckets: bucket %d", n, b)
			}
			names = append(names, string(n.Partition(n.Of(id), "")))
			if tenant != "" && string(n.Partition(n.Of(id), tenant)) != names[len(names)-1]+"-"+tenant {
				t.Fatalf("the tenant %q has the partition %q", tenant, n.Partition(n.Of(id), tenant))
			}
		}
		if hex := id.String()[8:11]; names[0] != hex[:1] || names[1] != hex[:2] || names[2] != hex {
			t.Fatalf("%v has the partitions %q", id, names)
		}
	})
	for _, n := range []keys.Buckets{16, 256, 4096} {
		if err := n.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []keys.Buckets{-16, 0, 1, 15, 17, 32, 64, 128, 255, 4095, 65536} {
		if err := n.Check(); !errors.Is(err, keys.ErrBuckets) {
			t.Errorf("%d buckets: %v", n, err)
		}
	}
}

// Every name is one the table service takes, and made of [0-9a-z_-] only.
func TestNamesFitTheService(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, id, d, h := buckets.Draw(t, "buckets"), ids.Draw(t, "id"), anyDay.Draw(t, "day"), hours.Draw(t, "hour")
		writer, part := writers.Draw(t, "writer"), rapid.IntRange(0, 99).Draw(t, "part")
		p := string(n.Partition(n.Of(id), tenants.Draw(t, "tenant")))
		page := keys.PageRow(id, d)
		kind := kinds.Draw(t, "kind")
		properties := []string{keys.RingProperty(kind, h, writer), keys.HourProperty(kind, h, writer), keys.DayProperty(kind, writer)}
		var all []table.Property
		for _, name := range properties {
			all = append(all, table.Property{Name: name})
			if part > 0 {
				all = append(all, table.Property{Name: keys.PartProperty(name, part)})
			}
		}
		all = slices.CompactFunc(all, func(a, b table.Property) bool { return a.Name == b.Name })
		slices.SortFunc(all, func(a, b table.Property) int { return strings.Compare(a.Name, b.Name) })
		all = slices.CompactFunc(all, func(a, b table.Property) bool { return a.Name == b.Name })
		for _, row := range []keys.Row{keys.SeriesRow(id), page, keys.SpillRow(page, keys.DayProperty(kind, writer), part)} {
			if err := table.CheckTransaction(p, []table.Operation{{Row: string(row), Properties: all}}); err != nil {
				t.Fatal(err)
			}
			if !onlyKeyBytes(p) || !onlyKeyBytes(string(row)) {
				t.Fatalf("partition %q, row %q", p, row)
			}
		}
		for _, property := range all {
			if !onlyKeyBytes(property.Name) || strings.Contains(property.Name, "-") {
				t.Fatalf("property %q", property.Name)
			}
		}
		prefix := keys.Tables(rapid.StringMatching(`[a-z][0-9a-z]{0,50}`).Draw(t, "prefix"))
		for _, name := range []string{prefix.Meta(), prefix.Ring(), prefix.Pages(d), prefix.Catalogue(keys.MonthOf(d))} {
			if err := table.CheckTable(name); err != nil {
				t.Fatal(err)
			}
			if !onlyKeyBytes(name) || strings.Contains(name, "-") {
				t.Fatalf("table %q", name)
			}
		}
	})
}

func TestSeriesOfRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := ids.Draw(t, "id")
		page := keys.PageRow(id, anyDay.Draw(t, "day"))
		for _, row := range []keys.Row{keys.SeriesRow(id), page, keys.SpillRow(page, "d_a", 7)} {
			if got, err := keys.SeriesOf(row); err != nil || got != id {
				t.Fatalf("SeriesOf(%q) = %v, %v", row, got, err)
			}
		}
		if !keys.IsSeriesRow(keys.SeriesRow(id)) || keys.IsSeriesRow(page) {
			t.Fatal("IsSeriesRow does not tell a series' row from a page's")
		}
	})
	for _, row := range []keys.Row{"", "store", "writer-a", "7c9ee0e2", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz-479212",
		"7c9ee0e2-7c9ee0e27c9ee0e27c9ee0e2"} {
		if _, err := keys.SeriesOf(row); !errors.Is(err, series.ErrNoID) {
			t.Errorf("SeriesOf(%q) gave %v", row, err)
		}
	}
}

func TestCatalogueMonthRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := keys.Tables(rapid.StringMatching(`[a-z][0-9a-z]{0,50}`).Draw(t, "prefix"))
		month := keys.MonthOf(anyDay.Draw(t, "day"))
		if got, ok := prefix.CatalogueMonth(prefix.Catalogue(month)); !ok || got != month {
			t.Fatalf("%q is of month %v, %v; want %v", prefix.Catalogue(month), got, ok, month)
		}
	})
	p := keys.Tables("daybook")
	for _, name := range []string{"", "daybook", "daybookcat", "daybookcat20261", "daybookcat2026111", "daybookcat202600",
		"daybookcat202613", "daybookcat+02611", "daybookcat-02611", "daybookcat2026 1", "daybookcat2026+1", "daybookcatabcdef",
		"daybookcat0x0b01", "daybookcat2_2611", "daybookraw202611", "daybookmeta", "daybook2cat202611", "cat202611", "Daybookcat202611"} {
		if m, ok := p.CatalogueMonth(name); ok {
			t.Errorf("%q is the catalogue of %v", name, m)
		}
	}
}

// Months follow each other, and each has the days of its calendar month.
func TestMonths(t *testing.T) {
	for d := keys.FirstDay; d <= keys.LastDay; d += 1 {
		if d == -460_000 {
			d = -40_000 // most of the Middle Ages are alike
		}
		if d == 60_000 {
			d = 460_000
		}
		when := d.Time()
		if got, want := keys.MonthOf(d).String(), when.Format("200601"); got != want {
			t.Fatalf("%v is in month %s", when, got)
		}
		if want := keys.MonthOf(d-1) + 1; d > keys.FirstDay && when.Day() == 1 && keys.MonthOf(d) != want {
			t.Fatalf("%v begins month %d, want %d", when, keys.MonthOf(d), want)
		}
	}
}

func TestRingSlots(t *testing.T) {
	check := func(t rapid.TB, first series.Hour) {
		t.Helper()
		var seen [keys.RingSlots]bool
		for i := range series.Hour(keys.RingSlots) {
			n := keys.RingSlot(first + i)
			if n < 0 || n >= keys.RingSlots {
				t.Fatalf("hour %d has slot %d", first+i, n)
			}
			if seen[n] {
				t.Fatalf("two of the 26 hours from %d on have slot %d", first, n)
			}
			seen[n] = true
		}
	}
	for first := series.Hour(-100); first <= 100; first++ {
		check(t, first)
	}
	check(t, -1<<31)
	check(t, 1<<31-keys.RingSlots)
	rapid.Check(t, func(t *rapid.T) {
		check(t, series.Hour(rapid.Int32Range(-1<<31, 1<<31-1-keys.RingSlots).Draw(t, "first")))
	})
	if keys.RingSlot(0) != 0 || keys.RingSlot(-1) != 25 || keys.RingSlot(-26) != 0 {
		t.Error("slots before 1970 do not go on where those after begin")
	}
}

func TestPropertyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		writer, h, kind := writers.Draw(t, "writer"), hours.Draw(t, "hour"), kinds.Draw(t, "kind")
		part := rapid.IntRange(0, 1000).Draw(t, "part")
		for name, want := range map[string]keys.Property{
			keys.DayProperty(kind, writer):     {Day: true},
			keys.HourProperty(kind, h, writer): {Number: h.OfDay()},
			keys.RingProperty(kind, h, writer): {Number: keys.RingSlot(h)},
		} {
			want.Kind, want.Writer, want.Part = kind, writer, part
			if got, ok := keys.ParseProperty(keys.PartProperty(name, part)); !ok || got != want {
				t.Fatalf("%q is read as %+v, %v; want %+v", keys.PartProperty(name, part), got, ok, want)
			}
		}
	})
}

func TestParsePropertyRefuses(t *testing.T) {
	for _, name := range []string{"", "_", "d", "d_", "h00", "h00_", "h26_a", "h99_a", "h1_a", "h001_a", "H00_a", "D_a", "x_a", "labels",
		"version", "closed", "h+5_a", "h-1_a", "h 1_a", "h0x_a", "h1e_a", "d_A", "d_a-b", "d_abcdefghi", "d_a_0", "d_a_-1", "d_a_+1", "d_a_01",
		"n26_a", "n1_a", "xn_a", "x00", "y00_a", "hn_a", "dh_a", "ddn_a", "dn", "dnx_a", "nd_a", "dn00_a", "Dn_a", "dn_a_0",
		"d_a_1_1", "d_a_", "d__1", "d_a_x", "d_a_99999999999999999999", "dd_a", "d1_a", "ﬂ0_a", "d_é"} {
		if p, ok := keys.ParseProperty(name); ok {
			t.Errorf("%q is read as %+v", name, p)
		}
	}
}

// What is read as a slot's property is written the same again: no two names are read alike.
func FuzzParseProperty(f *testing.F) {
	for _, name := range []string{"h00_a", "h25_a_1", "d_a", "d_west1_12", "h+5_a", "d_a_01", "labels", "h05_abcdefgh", "d_", "n05_a", "dn_a_3", "x25_a", "dx_a",
		"y05_a", "dh_a"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, ok := keys.ParseProperty(name)
		if !ok {
			return
		}
		again := keys.DayProperty(p.Kind, p.Writer)
		if !p.Day {
			again = keys.RingProperty(p.Kind, series.Hour(p.Number), p.Writer)
		}
		if again = keys.PartProperty(again, p.Part); again != name {
			t.Errorf("%q is read as %+v, which is written %q", name, p, again)
		}
	})
}

func TestCheckTenantAndWriter(t *testing.T) {
	for _, s := range []string{"a", "0", "-", "_", "a-b_9", strings.Repeat("a", 64)} {
		if err := keys.CheckTenant(s); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []string{"", "A", "a b", "a/b", "a'b", "é", "😀", "a\x00", "a%", ".", strings.Repeat("a", 65)} {
		if err := keys.CheckTenant(s); !errors.Is(err, keys.ErrTenant) {
			t.Errorf("tenant %q: %v", s, err)
		}
	}
	for _, s := range []string{"a", "0", "abcd1234"} {
		if err := keys.CheckWriter(s); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []string{"", "A", "a-b", "a_b", "é", "abcdefghi", "a "} {
		if err := keys.CheckWriter(s); !errors.Is(err, keys.ErrWriter) {
			t.Errorf("writer %q: %v", s, err)
		}
	}
}

func flat(ls labels.Labels) (s []string) {
	ls.Range(func(l labels.Label) { s = append(s, l.Name, l.Value) })
	return s
}

func onlyKeyBytes(s string) bool {
	return strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyz_- ") == "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyz_- ", r)
	}) < 0
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
