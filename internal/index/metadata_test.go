package index_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"daybook/internal/index"
	"daybook/internal/series"
)

func TestMetadata(t *testing.T) {
	m := index.NewMetadata()
	if _, ok := m.Get("b"); ok || m.Len() != 0 || len(m.All()) != 0 {
		t.Error("there is something in an empty one")
	}
	b := series.Metadata{Family: "b", Type: "counter", Help: "One.", Unit: "bytes"}
	a := series.Metadata{Family: "a", Type: "gauge"}
	for _, step := range []struct {
		set     series.Metadata
		changed bool
	}{
		{b, true},
		{b, false},
		{a, true},
		{series.Metadata{Family: "b", Type: "counter", Help: "Two.", Unit: "bytes"}, true},
		{series.Metadata{Family: "b", Type: "counter", Help: "Two."}, true},
		{series.Metadata{Family: "b", Type: "gauge", Help: "Two."}, true},
		{b, true},
		{a, false},
	} {
		if got := m.Set(step.set); got != step.changed {
			t.Errorf("%+v: changed %v", step.set, got)
		}
		if got, ok := m.Get(step.set.Family); !ok || got != step.set {
			t.Errorf("%+v instead of %+v", got, step.set)
		}
	}
	if got := m.All(); !slices.Equal(got, []series.Metadata{a, b}) || m.Len() != 2 {
		t.Errorf("all are %+v", got)
	}
	for _, c := range []struct {
		family, kind, help, unit string
		has                      bool
	}{
		{"b", "counter", "One.", "bytes", true}, {"a", "gauge", "", "", true}, {"c", "gauge", "", "", false},
		{"b", "gauge", "One.", "bytes", false}, {"b", "counter", "Two.", "bytes", false}, {"b", "counter", "One.", "", false},
	} {
		if got := m.Has([]byte(c.family), c.kind, []byte(c.help), []byte(c.unit)); got != c.has {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestMetadataTogether(t *testing.T) {
	m := index.NewMetadata()
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := range 500 {
				family := fmt.Sprint("m", i%50)
				m.Set(series.Metadata{Family: family, Type: "gauge", Help: fmt.Sprint(w)})
				if one, ok := m.Get(family); !ok || one.Family != family {
					t.Errorf("%s is lost: %+v", family, one)
				}
				if all := m.All(); !slices.IsSortedFunc(all, func(a, b series.Metadata) int {
					if a.Family < b.Family {
						return -1
					}
					return 1
				}) {
					t.Error("out of order")
				}
			}
		})
	}
	group.Wait()
	if m.Len() != 50 {
		t.Errorf("%d families", m.Len())
	}
}
