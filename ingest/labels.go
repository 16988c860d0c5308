package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/store"
)

// seriesLabels makes the labels of a series out of its label fields: sorted by name, without those that have an empty
// value. The error is a *Refusal where they are not a series' labels.
func seriesLabels(fields []byte) (labels.Labels, error) {
	all, err := readLabels(fields)
	if err != nil {
		return labels.EmptyLabels(), err
	}
	if reason := checkLabels(all); reason != "" {
		return labels.EmptyLabels(), &Refusal{Series: describe(all), Reason: reason}
	}
	return labels.New(slices.DeleteFunc(all, isEmpty)...), nil
}

func isEmpty(l labels.Label) bool { return l.Value == "" }

// readLabels reads label fields and sorts them by name.
func readLabels(fields []byte) (all []labels.Label, err error) {
	for len(fields) > 0 {
		f, rest, err := nextField(fields)
		if err != nil {
			return nil, err
		}
		fields = rest
		l, err := readLabel(f.data)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b labels.Label) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func readLabel(b []byte) (l labels.Label, err error) {
	for len(b) > 0 {
		var f field
		if f, b, err = nextField(b); err != nil {
			return l, err
		}
		switch f.tag {
		case tagName:
			l.Name = string(f.data)
		case tagLabelValue:
			l.Value = string(f.data)
		}
	}
	return l, nil
}

// labelOverhead is what a label takes beside name and value.
const labelOverhead = 6

// checkLabels says what is wrong with sorted labels, "" for nothing.
func checkLabels(all []labels.Label) string {
	if reason := checkTexts(all); reason != "" {
		return reason
	}
	bytes, name := 0, ""
	for _, l := range all {
		bytes += len(l.Name) + len(l.Value) + labelOverhead
		if l.Name == model.MetricNameLabel {
			name = l.Value
		}
	}
	if name == "" {
		return "the metric name (label __name__) is missing or empty"
	}
	if bytes > store.MaxLabelBytes {
		return fmt.Sprintf("its labels take %d bytes, at most %d are possible", bytes, store.MaxLabelBytes)
	}
	return ""
}

// checkTexts says which of sorted labels is none, "" for no one.
func checkTexts(all []labels.Label) string {
	for i, l := range all {
		switch {
		case l.Name == "":
			return "a label has an empty name"
		case !utf8.ValidString(l.Name):
			return fmt.Sprintf("the label name %+q is not valid UTF-8", abbreviate(l.Name))
		case !utf8.ValidString(l.Value):
			return fmt.Sprintf("the value of label %+q is not valid UTF-8: %+q", abbreviate(l.Name), abbreviate(l.Value))
		case i > 0 && l.Name == all[i-1].Name:
			return fmt.Sprintf("the label name %+q is repeated", abbreviate(l.Name))
		}
	}
	return ""
}

// nameOf is how people know a series, whatever its label fields are, in a thousand characters at most.
func nameOf(fields []byte) string {
	ls, err := seriesLabels(fields)
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Series
	}
	const long = 1000
	if s := ls.String(); len(s) <= long {
		return s
	}
	var all []labels.Label
	ls.Range(func(l labels.Label) { all = append(all, l) })
	return describe(all)
}

// describe names a series whose labels may be anything, in a few hundred characters of ASCII.
func describe(all []labels.Label) string {
	var name string
	var rest []string
	for _, l := range all {
		if l.Name == model.MetricNameLabel && name == "" {
			name = strings.Trim(fmt.Sprintf("%+q", abbreviate(l.Value)), `"`)
			continue
		}
		if len(rest) < 12 {
			rest = append(rest, fmt.Sprintf("%s=%+q", strings.Trim(fmt.Sprintf("%+q", abbreviate(l.Name)), `"`), abbreviate(l.Value)))
		}
	}
	return name + "{" + strings.Join(rest, ", ") + "}"
}

func abbreviate(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
