package ingest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/promql"

	"daybook/ingest"
	"daybook/internal/series"
	"daybook/internal/slot"
)

// Histograms have times that end in 7 ms, and floats have none of these: who comes first at a time that both have is
// for the tests of single cases.
func histogramTime(t series.Millis) series.Millis { return t/1000*1000 + 7 }

func floatTime(t series.Millis) series.Millis {
	if t == histogramTime(t) {
		return t + 1
	}
	return t
}

// other is what may come beside floats: a histogram or an exemplar of a metric.
type other struct {
	metric    string
	histogram series.Histogram
	exemplar  *series.Exemplar
}

// sendOthers writes histograms and exemplars in one of the versions, and compares what becomes of them with what should.
func (r *run) sendOthers(rng *rand.Rand, all []other) error {
	conflicts, outside, lost := 0, 0, 0
	newest := r.now.millis() + 10*60_000 // the clock may have gone back
	for _, o := range all {
		if o.exemplar != nil && o.exemplar.T > newest {
			lost++
			continue
		}
		if o.exemplar != nil {
			r.examples[o.metric] = slot.MergeExemplars(r.examples[o.metric], []series.Exemplar{*o.exemplar})
			continue
		}
		t := o.histogram.T
		have, known := r.natives[o.metric][t]
		switch {
		case t > newest:
			outside++
		case known && !slot.SameHistogram(have, o.histogram):
			conflicts++
			r.contested[contest{o.metric, t}] = true
		case r.contested[contest{o.metric, t}]:
			conflicts++
		default:
			r.natives[o.metric][t] = o.histogram
		}
	}
	version := 1 + rng.IntN(2)
	r.note += fmt.Sprintf("%d others, version %d", len(all), version)
	var err error
	if version == 1 {
		_, err = r.in.Write(r.tb.Context(), othersV1(all))
	} else {
		_, err = othersV2(all).send(r.world)
	}
	refused := 0
	if re := (*ingest.RefusedError)(nil); errors.As(err, &re) {
		refused, err = re.Histograms, nil
		if re.Exemplars != lost || re.Samples > 0 {
			return re
		}
	}
	if err == nil && (refused < outside || refused > outside+conflicts) {
		err = fmt.Errorf("%d of %d histograms refused; %d are out of bounds, %d have another value", refused, len(all), outside, conflicts)
	}
	return err
}

func othersV1(all []other) []byte {
	var request []prompb.TimeSeries
	for _, o := range all {
		ts := metric(o.metric)
		if o.exemplar == nil {
			ts.Histograms = append(ts.Histograms, protoV1(o.histogram))
		} else {
			x := prompb.Exemplar{Timestamp: int64(o.exemplar.T), Value: o.exemplar.V}
			o.exemplar.Labels.Range(func(l labels.Label) { x.Labels = append(x.Labels, prompb.Label{Name: l.Name, Value: l.Value}) })
			ts.Exemplars = append(ts.Exemplars, x)
		}
		request = append(request, ts)
	}
	return body(request...)
}

func othersV2(all []other) *v2 {
	request := newV2()
	for _, o := range all {
		ts := request.metric(o.metric)
		if o.exemplar == nil {
			ts.Histograms = []writev2.Histogram{protoV2(o.histogram)}
		} else {
			ts.Exemplars = []writev2.Exemplar{request.exemplar(*o.exemplar)}
		}
	}
	return request
}

// anyHistogram is a histogram of some shape, other than all before.
func (r *run) anyHistogram(rng *rand.Rand, t series.Millis) series.Histogram {
	n := int(r.fresh())
	h := []series.Histogram{native(time.Time{}, n), float(time.Time{}, n), custom(time.Time{}, float64(n), float64(n)+0.5)}[rng.IntN(3)]
	h.T = histogramTime(t)
	return h
}

func (r *run) anyExemplar(t series.Millis) *series.Exemplar {
	v := r.fresh()
	return &series.Exemplar{T: t, V: v, Labels: labels.FromStrings("trace_id", fmt.Sprint(v))}
}

// others are histograms and exemplars of the last minutes, or of any time.
func (r *run) others(rng *rand.Rand) error {
	scale := []series.Millis{5 * 60_000, 5 * 60_000, series.MillisPerHour, 30 * series.MillisPerHour, 10 * series.MillisPerDay}
	var all []other
	for _, m := range some(rng) {
		within := int64(scale[rng.IntN(len(scale))])
		for range 1 + rng.IntN(5) {
			all = append(all, other{metric: m, histogram: r.anyHistogram(rng, r.now.millis()-series.Millis(rng.Int64N(within)))})
		}
		if rng.IntN(2) == 0 {
			all = append(all, other{metric: m, exemplar: r.anyExemplar(r.now.millis() - series.Millis(rng.Int64N(within)))})
		}
	}
	return r.sendOthers(rng, all)
}

// knownOthers picks histograms and exemplars that are there.
func (r *run) knownOthers(rng *rand.Rand) (all []other) {
	for range 1 + rng.IntN(5) {
		m := metrics[rng.IntN(len(metrics))]
		if have := r.nativesOf(m); len(have) > 0 {
			all = append(all, other{metric: m, histogram: have[rng.IntN(len(have))]})
		}
		if have := r.examples[m]; len(have) > 0 {
			all = append(all, other{metric: m, exemplar: &have[rng.IntN(len(have))]})
		}
	}
	return all
}

func (r *run) othersAgain(rng *rand.Rand) error { return r.sendOthers(rng, r.knownOthers(rng)) }

// otherConflict sends other histograms for times that have one.
func (r *run) otherConflict(rng *rand.Rand) error {
	all := r.knownOthers(rng)
	for i := range all {
		if all[i].exemplar == nil {
			all[i].histogram = r.anyHistogram(rng, all[i].histogram.T)
		}
	}
	return r.sendOthers(rng, all)
}

// nativesOf gives the histograms of a metric in order of time.
func (r *run) nativesOf(metric string) (all []series.Histogram) {
	for _, h := range r.natives[metric] {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b series.Histogram) int { return int(a.T - b.T) })
	return all
}

// checkOthers compares histograms and exemplars with the truth.
func (r *run) checkOthers() error {
	for _, m := range metrics {
		got, err := r.histograms(r.id(m))
		if err != nil {
			return err
		}
		if want := r.nativesOf(m); !slices.EqualFunc(got, want, slot.SameHistogram) {
			return fmt.Errorf("%s: %d histograms instead of %d, or others: %v, want %v", m, len(got), len(want), got, want)
		}
		examples, err := r.exemplars(r.id(m))
		if err != nil {
			return err
		}
		if !slices.EqualFunc(examples, r.examples[m], sameExample) {
			return fmt.Errorf("%s: %d exemplars instead of %d, or others", m, len(examples), len(r.examples[m]))
		}
	}
	return nil
}

func sameExample(a, b series.Exemplar) bool {
	return a.T == b.T && a.V == b.V && labels.Equal(a.Labels, b.Labels)
}

// sameNatives compares what a query answers, which knows histograms of floats only, with the truth.
func sameNatives(want []series.Histogram, got []promql.HPoint) error {
	for i := range min(len(want), len(got)) {
		h := want[i].Float
		if h == nil {
			h = want[i].Int.ToFloat(nil)
		}
		if got[i].T != int64(want[i].T) || !got[i].H.Equals(h) {
			return fmt.Errorf("histogram %d is %v at %d instead of %v at %d", i, got[i].H, got[i].T, h, want[i].T)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d histograms instead of %d", len(got), len(want))
	}
	return nil
}
