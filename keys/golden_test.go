package keys_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
	"daybook/keys"
)

var update = flag.Bool("update", false, "rewrite the golden files: a changed line is a store that old versions cannot read")

// golden compares what was written down with testdata/name.golden.
type golden struct{ strings.Builder }

func (g *golden) heading(format string, args ...any) { fmt.Fprintf(g, "\n# "+format+"\n", args...) }

func (g *golden) line(inputs string, key any) { fmt.Fprintf(g, "%-48s => %v\n", inputs, key) }

func (g *golden) check(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	got := strings.TrimLeft(g.String(), "\n")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		var w, g string
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if w != g {
			t.Errorf("%s:%d\n want %s\n  got %s", path, i+1, w, g)
		}
	}
}

// The days on which something in the calendar happens, and those around the bounds of what a row can hold.
var days = []series.Day{
	-1 << 31, keys.FirstDay - 1, keys.FirstDay, keys.FirstDay + 1,
	day(1582, 10, 15), day(1899, 12, 31), day(1900, 2, 28), day(1900, 3, 1),
	day(1968, 2, 29), day(1969, 12, 31), day(1970, 1, 1), day(1970, 1, 2), day(1972, 2, 29),
	day(1999, 12, 31), day(2000, 1, 1), day(2000, 2, 29), day(2000, 3, 1),
	day(2024, 2, 28), day(2024, 2, 29), day(2024, 3, 1), day(2026, 2, 28), day(2026, 3, 1),
	day(2026, 10, 31), day(2026, 11, 1), day(2026, 11, 30), day(2026, 12, 1), day(2026, 12, 31), day(2027, 1, 1),
	day(2100, 2, 28), day(2100, 3, 1),
	keys.LastDay - 1, keys.LastDay, keys.LastDay + 1, 1<<31 - 1,
}

func day(year, month, d int) series.Day {
	return series.MillisOf(time.Date(year, time.Month(month), d, 0, 0, 0, 0, time.UTC)).Day()
}

func date(d series.Day) string { return fmt.Sprintf("%d %s", d, d.Time().Format("2006-01-02")) }

var up = labels.FromStrings("__name__", "up", "instance", "a:9100", "job", "node")

func TestGoldenIDs(t *testing.T) {
	var g golden
	g.heading("SeriesID: tenant, labels => id")
	for _, s := range []struct {
		tenant string
		ls     labels.Labels
	}{
		{"", up},
		{"acme", up},
		{"", labels.EmptyLabels()},
		{"", labels.FromStrings("__name__", "up")},
		{"", labels.FromStrings("__name__", "up", "job", "node")},
		{"", labels.FromStrings("job", "up")},
		{"", labels.FromStrings("a", "bc")},
		{"", labels.FromStrings("ab", "c")},
		{"a", labels.FromStrings("b", "c")},
		{"", labels.FromStrings("__name__", "m", "l", "it's")},
		{"", labels.FromStrings("__name__", "m", "l", "a/b\\c#d?e")},
		{"", labels.FromStrings("__name__", "m", "l", "100%")},
		{"", labels.FromStrings("__name__", "m", "l", "\t\u0080\u0640😀")},
	} {
		g.line(fmt.Sprintf("%q, %s", s.tenant, s.ls), keys.SeriesID(s.tenant, s.ls))
	}
	g.line("\"\", {__name__=\"m\", l=\"x…\"} of 2 KiB",
		keys.SeriesID("", labels.FromStrings("__name__", "m", "l", strings.Repeat("x", 2<<10))))
	g.heading("MetricHash: metric => what its ids begin with")
	for _, metric := range []string{"", "up", "http_requests_total", "é"} {
		g.line(fmt.Sprintf("%q", metric), fmt.Sprintf("%08x", keys.MetricHash(metric)))
	}
	g.check(t, "ids")
}

// The example that the package's comment draws is a real one.
func TestDocExample(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	id := keys.SeriesID("", up)
	n := keys.Buckets(256)
	page := strings.Replace(string(keys.PageRow(id, day(2026, 11, 30))), id.String(), id.String()[:8]+"…", 1)
	for _, want := range []string{
		string(n.Partition(n.Of(id), "")) + "         " + page,
		string(n.Partition(n.Of(id), "acme")),
		"metadata   " + string(keys.MetadataRow("up"))[:8] + "…",
		string(keys.MetadataPartition("acme")),
		"id " + id.String()[:8] + "…",
	} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("doc.go does not say %q", want)
		}
	}
}

func TestGoldenPartitions(t *testing.T) {
	var g golden
	g.heading("Buckets.Of and Partition: buckets, tenant, id => partition")
	for _, n := range []keys.Buckets{16, 256, 4096} {
		for _, tenant := range []string{"", "acme", "a-b_9"} {
			for _, hex := range []string{
				"00000000000000000000000000000000", "ffffffff00000000ffffffffffffffff", "00000000ffffffff0000000000000000",
				"00000000010000000000000000000000", "00000000001000000000000000000000", "000000000fffffff0000000000000000",
				"7c9ee0e25e1a00000000000000000000",
			} {
				id, err := series.ParseID(hex)
				if err != nil {
					t.Fatal(err)
				}
				g.line(fmt.Sprintf("%d, %q, %s", n, tenant, hex), n.Partition(n.Of(id), tenant))
			}
		}
	}
	g.check(t, "partitions")
}

func TestGoldenRows(t *testing.T) {
	var g golden
	id := keys.SeriesID("", up)
	g.heading("SeriesRow: id => row")
	g.line(id.String(), keys.SeriesRow(id))
	g.heading("PageRow: day (of the series above) => row")
	for _, d := range days {
		g.line(date(d), keys.PageRow(id, d))
	}
	g.heading("SpillRow: property, n (of the page of 2026-11-30) => row")
	page := keys.PageRow(id, day(2026, 11, 30))
	for _, n := range []int{0, 1, 9, 10, 99} {
		g.line(fmt.Sprintf("d_a, %d", n), keys.SpillRow(page, "d_a", n))
	}
	g.line("h05_west1, 3", keys.SpillRow(page, "h05_west1", 3))
	g.check(t, "rows")
}

func TestGoldenTables(t *testing.T) {
	var g golden
	for _, prefix := range []keys.Tables{"daybook", "x"} {
		g.heading("prefix %q", prefix)
		g.line("Meta", prefix.Meta())
		g.line("Ring", prefix.Ring())
		for _, d := range days {
			g.line("Pages "+date(d), prefix.Pages(d))
		}
		var months []keys.Month
		for _, d := range days {
			months = append(months, keys.MonthOf(d))
		}
		for _, m := range slices.Compact(months) {
			g.line(fmt.Sprintf("Catalogue month %d", m), prefix.Catalogue(m))
		}
	}
	g.check(t, "tables")
}

func TestGoldenProperties(t *testing.T) {
	var g golden
	ringHours := []series.Hour{-27, -26, -25, -2, -1, 0, 1, 23, 24, 25, 26, 51, 52, 498888, 498913, 498914}
	pageHours := []series.Hour{-25, -24, -23, -1, 0, 1, 9, 10, 23, 24, 498888, 498911, 498912}
	for _, kind := range series.Kinds {
		of := ""
		if kind != series.Floats {
			of = " of " + kind.String()
			ringHours, pageHours = []series.Hour{-1, 0, 498888, 498913}, []series.Hour{-1, 0, 498911}
		}
		g.heading("RingProperty%s: hour, writer => property", of)
		for _, h := range ringHours {
			g.line(fmt.Sprintf("%d %s, a", h, h.Start().Time().Format("2006-01-02T15")), keys.RingProperty(kind, h, "a"))
		}
		g.heading("HourProperty%s: hour, writer => property", of)
		for _, h := range pageHours {
			g.line(fmt.Sprintf("%d %s, west1", h, h.Start().Time().Format("2006-01-02T15")), keys.HourProperty(kind, h, "west1"))
		}
		g.heading("DayProperty%s: writer => property", of)
		for _, writer := range []string{"a", "1", "abcd1234"} {
			g.line(writer, keys.DayProperty(kind, writer))
		}
	}
	g.heading("PartProperty: property, n => property")
	for _, n := range []int{0, 1, 2, 9, 10, 17} {
		g.line(fmt.Sprintf("d_a, %d", n), keys.PartProperty("d_a", n))
	}
	g.check(t, "properties")
}

func TestGoldenMetadata(t *testing.T) {
	var g golden
	g.heading("MetadataPartition: tenant => partition")
	for _, tenant := range []string{"", "acme", "a-b_9"} {
		g.line(fmt.Sprintf("%q", tenant), keys.MetadataPartition(tenant))
	}
	g.heading("MetadataRow: family => row")
	for _, family := range []string{"", "up", "http_requests_total", "é", "it's a/b\\c#d?e"} {
		g.line(fmt.Sprintf("%q", family), keys.MetadataRow(family))
	}
	g.check(t, "metadata")
}
