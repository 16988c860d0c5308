package ingest

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
)

// What OpenMetrics says an exemplar's labels may have together, and what that takes as checkLabels counts: each character
// up to four bytes, each label one character at least.
const (
	maxExemplarRunes = 128
	maxExemplarBytes = maxExemplarRunes * (utf8.UTFMax + labelOverhead)
)

const longExemplar = "the labels of an exemplar have more than 128 characters"

// checkedExemplar is an exemplar of a series as it is stored, or why it is not.
type checkedExemplar struct {
	series.Exemplar
	reason string
}

// check makes an exemplar of what a message has, and says why it cannot be stored.
func (m *message) check(e exemplar, b bounds) (c checkedExemplar, err error) {
	c.T, c.V, c.reason = e.t, e.v, e.fault
	switch {
	case c.reason != "":
		return c, nil
	case e.to-e.from > 4*maxExemplarBytes: // whatever it says, it is too long
		c.reason = longExemplar
		return c, nil
	case !b.hold(e.t):
		c.reason = "an exemplar: " + b.reason(e.t)
		return c, nil
	}
	c.Labels, c.reason, err = exemplarLabels(m.fieldsOf(e))
	return c, err
}

// exemplarLabels makes the labels of an exemplar out of its label fields, or says what is wrong with them.
func exemplarLabels(fields []byte) (ls labels.Labels, reason string, err error) {
	all, err := readLabels(fields)
	if err != nil {
		return ls, "", err
	}
	if reason := checkTexts(all); reason != "" {
		return ls, "the labels of an exemplar: " + reason, nil
	}
	runes := 0
	for _, l := range all {
		runes += utf8.RuneCountInString(l.Name) + utf8.RuneCountInString(l.Value)
	}
	if runes > maxExemplarRunes {
		return ls, longExemplar, nil
	}
	return labels.New(slices.DeleteFunc(all, isEmpty)...), "", nil
}

// sameExemplar tells whether two exemplars of one time are the same, bit for bit.
func sameExemplar(a, b series.Exemplar) bool {
	return a.T == b.T && math.Float64bits(a.V) == math.Float64bits(b.V) && labels.Equal(a.Labels, b.Labels)
}
