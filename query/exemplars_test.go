package query

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// exemplar is one at a time before midnight, in milliseconds.
func exemplar(before time.Duration, trace string) series.Exemplar {
	return series.Exemplar{T: series.MillisOf(midnight.Add(-before)), V: before.Seconds(), Labels: labels.FromStrings("trace_id", trace)}
}

// keep writes exemplars of one hour into the store.
func (w *world) keep(entry *index.Series, all ...series.Exemplar) {
	w.Helper()
	h := all[0].T.Hour()
	w.index.Enter(entry, keys.MonthOf(h.Day()))
	w.ok(w.store.WriteHours(w.Context(), w.store.Bucket(entry.ID), series.MillisOf(w.now), []store.Write{{
		ID: entry.ID, Top: h, Slots: []store.HourSlot{{Hour: h, Kind: slot.Exemplars, Data: slot.EncodeExemplars(nil, h, all)}},
	}}))
}

func (w *world) exemplars(expr string, from, to time.Time) []Exemplars {
	w.Helper()
	parsed, err := w.reader.Parse(expr)
	w.ok(err)
	found, err := w.reader.Exemplars(w.Context(), parsed, series.MillisOf(from), series.MillisOf(to))
	w.ok(err)
	return found
}

// Exemplars come from pages, the ring and memory, in order of time, each once.
func TestExemplars(t *testing.T) {
	w := newWorld(t, midnight, series.MillisOf(midnight).Day()-2)
	old, late := exemplar(40*24*time.Hour, "old"), exemplar(50*time.Hour, "late")
	twice, recent, newest := exemplar(90*time.Minute, "twice"), exemplar(80*time.Minute, "recent"), exemplar(time.Minute, "newest")
	other := exemplar(90*time.Minute, "other") // of the same time
	m, n := w.listed(metric("m", "x", "1")), w.listed(metric("n"))
	w.listed(metric("m", "x", "0"))
	w.keep(m, old)
	w.keep(m, late)
	w.keep(m, twice, recent)
	w.keep(n, newest)
	w.head.exemplars[m.ID] = []series.Exemplar{other, twice, newest}
	long, year := midnight.Add(-100*24*time.Hour), midnight.Add(365*24*time.Hour)

	check := func(what string, got []Exemplars, want ...Exemplars) {
		t.Helper()
		same := func(a, b series.Exemplar) bool { return a.T == b.T && a.V == b.V && labels.Equal(a.Labels, b.Labels) }
		if !slices.EqualFunc(got, want, func(a, b Exemplars) bool {
			return labels.Equal(a.Labels, b.Labels) && slices.EqualFunc(a.Exemplars, b.Exemplars, same)
		}) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	of := func(s *index.Series, all ...series.Exemplar) Exemplars { return Exemplars{s.Labels, all} }
	check("all of m", w.exemplars("m", long, year), of(m, old, late, other, twice, recent, newest))
	check("the last day", w.exemplars("m", midnight.Add(-24*time.Hour), midnight), of(m, other, twice, recent, newest))
	check("to the millisecond", w.exemplars("m", late.T.Time(), twice.T.Time()), of(m, late, other, twice))
	check("just behind", w.exemplars("m", twice.T.Time().Add(time.Millisecond), newest.T.Time().Add(-time.Millisecond)), of(m, recent))
	check("of all selectors", w.exemplars(`rate(m{x="1"}[5m]) / on () n`, midnight.Add(-5*time.Minute), midnight), of(m, newest), of(n, newest))
	check("without any", w.exemplars(`m{x="0"}`, long, year))
	check("of nothing", w.exemplars("1 + 1", long, year))
}

// What the table fails with is told, and the work stops when nobody waits for it.
func TestExemplarsFail(t *testing.T) {
	w := newWorld(t, midnight, series.MillisOf(midnight).Day()-2)
	w.keep(w.listed(metric("m")), exemplar(time.Minute, "a"))
	parsed, err := w.reader.Parse("m")
	w.ok(err)
	failure := errors.New("connection closing")
	w.tables.Add(tabletest.Fault{Method: tabletest.Get, Err: failure})
	if _, err := w.reader.Exemplars(t.Context(), parsed, AlwaysFrom, AlwaysTo); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
	w.tables.Heal()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.reader.Exemplars(ctx, parsed, AlwaysFrom, AlwaysTo); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
