package ingest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"daybook/internal/series"
)

// each goes over the messages of a request; with version 2.0 no more than so many bytes of symbols are written out.
func (r *request) each(budget int, f func(*message) error) error {
	if r.version == v1 {
		return eachSeries(r.decoded, &r.message, f)
	}
	if err := r.symbols.load(r.decoded, budget); err != nil {
		return err
	}
	return r.symbols.each(&r.message, f)
}

// take puts what is in the request into the head.
func (in *Ingester) take(r *request) error {
	b := in.bounds()
	before := 0 // messages of the request handled so far
	return r.each(in.cfg.MaxDecoded, func(m *message) error {
		r.bad.reset()
		r.name = ""
		if err := in.takeMessage(r, m, b); err != nil {
			return err
		}
		if r.bad.any() && r.accepted == nil {
			r.accepted = r.acceptedSoFar(before)
		}
		if r.accepted != nil {
			r.accepted = m.appendWithout(r.accepted, &r.bad)
		}
		before++
		return nil
	})
}

// acceptedSoFar is the request up to its n-th message, of which nothing was refused.
func (r *request) acceptedSoFar(n int) []byte {
	accepted := make([]byte, 0, len(r.decoded))
	again := request{version: r.version, decoded: r.decoded}
	_ = again.each(math.MaxInt, func(m *message) error { // it was read without an error before
		if n == 0 {
			return errEnough
		}
		accepted = m.appendWithout(accepted, &parts{})
		n--
		return nil
	})
	return accepted
}

var errEnough = errors.New("that is all that was wanted")

func (in *Ingester) takeMessage(r *request, m *message, b bounds) error {
	if !m.noSeries {
		if err := in.takeSeries(r, m, b); err != nil {
			return err
		}
	}
	if m.metadata.given && !r.bad.whole {
		in.takeMetadata(r, m)
	}
	return nil
}

// takeMetadata takes the metadata of a family, and notes where it refuses it.
func (in *Ingester) takeMetadata(r *request, m *message) {
	news, reason := in.families.take(&m.metadata)
	if news {
		r.news++
	}
	if reason == "" {
		return
	}
	r.bad.metadata = true
	r.refused.Metadata++
	r.refused.note(Refusal{strings.Trim(fmt.Sprintf("%+q", abbreviate(string(m.metadata.family))), `"`), reason, 1})
}

// takeSeries puts the samples, histograms and exemplars of one series into the head, and notes what it refuses.
func (in *Ingester) takeSeries(r *request, m *message, b bounds) error {
	if m.fault != "" {
		r.refuse(m, Refusal{Series: r.nameOf(m), Reason: m.fault})
		return nil
	}
	if err := r.read(m, b); err != nil {
		return err
	}
	if !r.anyGood(m, b) {
		return r.refuseAll(m, b) // what has nothing to store does not become a series
	}
	s, err := in.head.find(m.labels)
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		r.refuse(m, *refusal)
		return nil
	}
	if err != nil {
		return err
	}
	for i, sample := range m.samples {
		if reason := in.takeSample(r, s, sample, b); reason != "" {
			r.refuseSample(m, i, reason)
		} else {
			r.result.Samples++
		}
	}
	in.takeHistograms(r, m, s)
	in.takeExemplars(r, m, s)
	return nil
}

// read makes histograms and exemplars of what the message has, and checks them.
func (r *request) read(m *message, b bounds) error {
	r.histograms, r.exemplars = r.histograms[:0], r.exemplars[:0]
	for _, raw := range m.histograms {
		fields, err := readHistogram(raw)
		if err != nil {
			return err
		}
		c := checkedHistogram{Histogram: fields.histogram(), size: len(raw)}
		if c.reason = fields.check(c.Histogram, r.version); c.reason == "" && !b.hold(c.T) {
			c.reason = b.reason(c.T)
		}
		r.histograms = append(r.histograms, c)
	}
	for _, e := range m.exemplars {
		c, err := m.check(e, b)
		if err != nil {
			return err
		}
		r.exemplars = append(r.exemplars, c)
	}
	return nil
}

// anyGood tells whether there is something that can be stored, if the labels can.
func (r *request) anyGood(m *message, b bounds) bool {
	return slices.ContainsFunc(m.samples, func(s series.Sample) bool { return b.hold(s.T) }) ||
		slices.ContainsFunc(r.histograms, func(c checkedHistogram) bool { return c.reason == "" }) ||
		slices.ContainsFunc(r.exemplars, func(c checkedExemplar) bool { return c.reason == "" })
}

// refuse refuses all of a series for one reason.
func (r *request) refuse(m *message, why Refusal) {
	why.Count = len(m.samples) + len(m.histograms) + len(m.exemplars)
	r.refused.Samples += len(m.samples)
	r.refused.Histograms += len(m.histograms)
	r.refused.Exemplars += len(m.exemplars)
	if m.metadata.given {
		r.refused.Metadata++
		why.Count++
	}
	r.refused.note(why)
	r.bad.whole = true
}

// refuseAll refuses a series of which nothing can be stored; there may be nothing in it at all.
func (r *request) refuseAll(m *message, b bounds) error {
	_, err := seriesLabels(m.labels)
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		r.refuse(m, *refusal)
		return nil
	}
	for i, sample := range m.samples {
		r.refuseSample(m, i, b.reason(sample.T))
	}
	for i, c := range r.histograms {
		r.refuseHistogram(m, i, c.reason)
	}
	for i, c := range r.exemplars {
		r.refuseExemplar(m, i, c.reason)
	}
	return err
}

func (r *request) refuseSample(m *message, i int, reason string) {
	r.bad.samples = append(r.bad.samples, i)
	r.refused.Samples++
	r.refused.note(Refusal{r.nameOf(m), reason, 1})
}

func (r *request) refuseHistogram(m *message, i int, reason string) {
	r.bad.histograms = append(r.bad.histograms, i)
	r.refused.Histograms++
	r.refused.note(Refusal{r.nameOf(m), reason, 1})
}

func (r *request) refuseExemplar(m *message, i int, reason string) {
	r.bad.exemplars = append(r.bad.exemplars, i)
	r.refused.Exemplars++
	r.refused.note(Refusal{r.nameOf(m), reason, 1})
}

// takeSample puts a sample into the head, or says why not.
func (in *Ingester) takeSample(r *request, s *memSeries, sample series.Sample, b bounds) (reason string) {
	if !b.hold(sample.T) {
		return b.reason(sample.T)
	}
	switch s.append(sample, in.head, in.cfg.MaxPerHour) {
	case taken:
		r.fresh++
	case conflict:
		return conflictAt(sample.T)
	case overfull:
		return fmt.Sprintf("more than %d samples of one series within an hour (ingest.max_samples_per_hour)", in.cfg.MaxPerHour)
	}
	return ""
}

func conflictAt(t series.Millis) string {
	return fmt.Sprintf("another value is stored for timestamp %s already", stamp(t))
}

func (in *Ingester) takeHistograms(r *request, m *message, s *memSeries) {
	for i, c := range r.histograms {
		if c.reason == "" {
			switch s.appendHistogram(c.Histogram, c.size, maxHistogramBytes, in.head) {
			case taken:
				r.fresh++
			case conflict:
				c.reason = conflictAt(c.T)
			case overfull:
				c.reason = fmt.Sprintf("more than %d bytes of native histograms of one series within an hour", maxHistogramBytes)
			}
		}
		if c.reason != "" {
			r.refuseHistogram(m, i, c.reason)
			continue
		}
		r.result.Histograms++
	}
}

// takeExemplars takes exemplars. Those beyond the limit are left out without a word: they are examples, and a 400 for
// each request of a busy hour would drown what matters.
func (in *Ingester) takeExemplars(r *request, m *message, s *memSeries) {
	for i, c := range r.exemplars {
		if c.reason != "" {
			r.refuseExemplar(m, i, c.reason)
			continue
		}
		switch s.appendExemplar(c.Exemplar, in.cfg.MaxExemplars, in.head) {
		case overfull:
			r.bad.exemplars = append(r.bad.exemplars, i)
			r.leftOut++
			continue
		case taken:
			r.fresh++
		}
		r.result.Exemplars++
	}
}

func (in *Ingester) bounds() bounds {
	now := series.MillisOf(in.cfg.Now())
	b := bounds{now: now, newest: now + series.Millis(Future.Milliseconds()), oldest: earliest, retention: in.cfg.Retention}
	if in.cfg.Retention > 0 {
		b.oldest = max(earliest, now-series.Millis(in.cfg.Retention.Milliseconds()))
	}
	return b
}

// nameOf is how a refusal names a series, whatever its labels are.
func (r *request) nameOf(m *message) string {
	if r.name == "" {
		r.name = nameOf(m.labels)
	}
	return r.name
}
