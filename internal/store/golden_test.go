package store_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/keys"
)

var update = flag.Bool("update", false, "rewrite testdata: a changed line is a store that old versions cannot read")

// TestGolden pins what lies where in the tables, step by step.
func TestGolden(t *testing.T) {
	svc := inMemory(t)
	s := open(t, svc, keep, today)
	var text strings.Builder
	shown := map[string]bool{}
	step := func(what string) { // shows the rows that are new or changed
		fmt.Fprintf(&text, "# %s\n", what)
		for _, line := range dump(t, svc) {
			if !shown[line] {
				fmt.Fprintln(&text, line)
				shown[line] = true
			}
		}
		fmt.Fprintln(&text)
	}
	id, ls := named("one")
	gone, goneLabels := named("gone")
	step("a new store")
	list(t, s, keys.MonthOf(today), ls, goneLabels)
	step("two series are listed")
	ok(t, put(s, ten.Start(), gone, ten, every(ten, 60)))
	ok(t, put(s, ten.Start(), id, ten, every(ten, 240)))
	ok(t, put(s, (ten+1).Start(), id, ten+1, noise(ten+1, 4_000)))
	step("three hours are flushed, one of them large")
	ok(t, put(s, (ten+1).Start(), id, ten-25, every(ten-25, 10)))
	ok(t, put(s, (ten+1).Start(), id, ten-12, every(ten-12, 10)))
	step("two hours of yesterday come late, one of them older than the ring")
	ok(t, s.Seal(t.Context(), store.Page{ID: id, Day: today - 1}))
	step("yesterday is sealed")
	for h := ten + 2; h < (today + 1).FirstHour(); h++ {
		ok(t, put(s, h.Start(), id, h, noise(h, 500)))
	}
	ok(t, closeDays(t.Context(), s, today))
	step("the day is over and closed")
	ok(t, put(s, (ten+26).Start(), id, ten+26, noise(ten+26, 100)))
	step("tomorrow's hour 12 takes the place of today's hour 10 in the ring")
	golden(t, "entities", text.String())
}

// golden compares text with testdata/name.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name + ".golden"
	if *update {
		ok(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	ok(t, err)
	if got != string(want) {
		t.Errorf("%s has\n%s\nand now it is\n%s", path, want, got)
	}
}

// dump describes every row of every table in a line.
func dump(t *testing.T, svc table.Service) (lines []string) {
	t.Helper()
	names, err := svc.Tables(t.Context())
	ok(t, err)
	for _, name := range names {
		partitions := []string{"meta"}
		for b := range 16 {
			partitions = append(partitions, string(keys.Buckets(16).Partition(b, "")))
		}
		for _, partition := range partitions {
			for _, e := range rows(t, svc, name, partition) {
				lines = append(lines, fmt.Sprintf("%-17s %-4s %s %s", name, partition, e.Key.Row, describe(name, e)))
			}
		}
	}
	return lines
}

func describe(name string, e table.Entity) string {
	var all []string
	for _, p := range e.Properties {
		what := fmt.Sprintf("%d bytes", len(p.Value))
		switch {
		case name == "daybookmeta":
			n, _ := binary.Varint(p.Value)
			if what = fmt.Sprint(n); n > 10_000 {
				what = series.Day(n).Time().Format("2006-01-02")
			}
		case p.Name == "labels":
			what = fmt.Sprintf("%q", p.Value)
		}
		all = append(all, p.Name+": "+what)
	}
	return strings.Join(all, ", ")
}
