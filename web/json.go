package web

import (
	"fmt"
	"net/http"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/jsonutil"
)

// jsonStream writes an answer piece by piece, with no copy of the result and no allocation for a sample.
type jsonStream struct{ *jsoniter.Stream }

const streamBuffer = 64 << 10

var streams = jsoniter.Config{}.Froze()

// succeed answers with data, in Prometheus's envelope.
func (c *call) succeed(data func(*jsonStream), warnings, infos []string) error {
	c.Response().Header().Set("Content-Type", "application/json")
	c.Response().Header().Set("X-Content-Type-Options", "nosniff")
	c.Response().WriteHeader(http.StatusOK)
	s := &jsonStream{jsoniter.NewStream(streams, c.Response(), streamBuffer)}
	s.WriteObjectStart()
	s.WriteObjectField("status")
	s.WriteString("success")
	s.next("data")
	data(s)
	if len(warnings) > 0 {
		s.next("warnings")
		s.strings(warnings)
	}
	if len(infos) > 0 {
		s.next("infos")
		s.strings(infos)
	}
	s.WriteObjectEnd()
	if err := s.Flush(); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// comma separates elements, and lets out what has piled up.
func (s *jsonStream) comma(i int) {
	if i > 0 {
		s.WriteMore()
	}
	if s.Buffered() > streamBuffer {
		_ = s.Flush() // the stream keeps the error for the last Flush
	}
}

func (s *jsonStream) next(field string) {
	s.WriteMore()
	s.WriteObjectField(field)
}

func (s *jsonStream) number(field string, n int64) {
	s.next(field)
	s.WriteInt64(n)
}

func (s *jsonStream) strings(all []string) {
	s.WriteArrayStart()
	for i, one := range all {
		s.comma(i)
		s.WriteString(one)
	}
	s.WriteArrayEnd()
}

func (s *jsonStream) labels(ls labels.Labels) {
	s.WriteObjectStart()
	i := 0
	ls.Range(func(l labels.Label) {
		s.comma(i)
		i++
		s.WriteObjectField(l.Name)
		s.WriteString(l.Value)
	})
	s.WriteObjectEnd()
}

// value writes the result of a query.
func (s *jsonStream) value(v parser.Value) {
	s.WriteObjectStart()
	s.WriteObjectField("resultType")
	s.WriteString(string(v.Type()))
	s.next("result")
	switch v := v.(type) {
	case promql.Matrix:
		s.matrix(v)
	case promql.Vector:
		s.vector(v)
	case promql.Scalar:
		s.point(v.T, v.V)
	case promql.String:
		s.WriteArrayStart()
		jsonutil.MarshalTimestamp(v.T, s.Stream)
		s.WriteMore()
		s.WriteString(v.V)
		s.WriteArrayEnd()
	}
	s.WriteObjectEnd()
}

func (s *jsonStream) matrix(m promql.Matrix) {
	s.WriteArrayStart()
	for i, one := range m {
		s.comma(i)
		s.WriteObjectStart()
		s.WriteObjectField("metric")
		s.labels(one.Metric)
		if len(one.Floats) > 0 {
			s.next("values")
			s.WriteArrayStart()
			for j, p := range one.Floats {
				s.comma(j)
				s.point(p.T, p.F)
			}
			s.WriteArrayEnd()
		}
		if len(one.Histograms) > 0 {
			s.next("histograms")
			s.WriteArrayStart()
			for j, p := range one.Histograms {
				s.comma(j)
				s.histogram(p.T, p.H)
			}
			s.WriteArrayEnd()
		}
		s.WriteObjectEnd()
	}
	s.WriteArrayEnd()
}

func (s *jsonStream) vector(v promql.Vector) {
	s.WriteArrayStart()
	for i, one := range v {
		s.comma(i)
		s.WriteObjectStart()
		s.WriteObjectField("metric")
		s.labels(one.Metric)
		if one.H == nil {
			s.next("value")
			s.point(one.T, one.F)
		} else {
			s.next("histogram")
			s.histogram(one.T, one.H)
		}
		s.WriteObjectEnd()
	}
	s.WriteArrayEnd()
}

func (s *jsonStream) point(t int64, v float64) {
	s.WriteArrayStart()
	jsonutil.MarshalTimestamp(t, s.Stream)
	s.WriteMore()
	jsonutil.MarshalFloat(v, s.Stream)
	s.WriteArrayEnd()
}

func (s *jsonStream) histogram(t int64, h *histogram.FloatHistogram) {
	s.WriteArrayStart()
	jsonutil.MarshalTimestamp(t, s.Stream)
	s.WriteMore()
	jsonutil.MarshalHistogram(h, s.Stream)
	s.WriteArrayEnd()
}
