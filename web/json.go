package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	jsoniter "github.com/json-iterator/go"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/jsonutil"
)

// jsonStream writes an answer piece by piece, with no copy of the result and no allocation for a sample.
type jsonStream struct{ *jsoniter.Stream }

const streamBuffer = 64 << 10

// streams lends out streams with their buffers.
var streams = sync.Pool{New: func() any {
	return &jsonStream{jsoniter.NewStream(jsoniter.Config{}.Froze(), nil, streamBuffer)}
}}

// maxKeptStream is a little more than a buffer that is let out as soon as it is full.
const maxKeptStream = 2 * streamBuffer

// succeed answers with data, in Prometheus's envelope.
func (c *call) succeed(data func(*jsonStream), warnings, infos []string) error {
	return c.server.send(c, http.StatusOK, func(s *jsonStream) { s.success(data, warnings, infos) })
}

// send answers with JSON.
func (s *Server) send(c echo.Context, status int, write func(*jsonStream)) error {
	c.Response().Header().Set("Content-Type", "application/json")
	c.Response().WriteHeader(status)
	out := streams.Get().(*jsonStream)
	out.Reset(s.patient(c))
	out.Error = nil
	write(out)
	err := out.Flush()
	out.Reset(nil)
	if cap(out.Buffer()) <= maxKeptStream {
		streams.Put(out)
	}
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// patientWriter gives the client a while for each piece of the answer, so that one which stops reading is let go, and one
// which is only slow is not.
type patientWriter struct {
	out        io.Writer
	connection *http.ResponseController
	patience   time.Duration
}

func (s *Server) patient(c echo.Context) io.Writer {
	return &patientWriter{c.Response(), http.NewResponseController(c.Response()), s.patience}
}

func (w *patientWriter) Write(b []byte) (int, error) {
	_ = w.connection.SetWriteDeadline(time.Now().Add(w.patience)) // where there are no deadlines, nobody is slow
	return w.out.Write(b)
}

func (s *jsonStream) success(data func(*jsonStream), warnings, infos []string) {
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
}

func (s *jsonStream) failure(a *apiError) {
	s.WriteObjectStart()
	s.WriteObjectField("status")
	s.WriteString("error")
	s.next("errorType")
	s.WriteString(a.kind)
	s.next("error")
	s.text(a.Error())
	s.WriteObjectEnd()
}

// array writes a list, and lets out what has piled up. When the client has gone the rest is not written, nor kept.
func array[T any](s *jsonStream, list []T, write func(T)) {
	s.WriteArrayStart()
	for i, one := range list {
		if i > 0 {
			s.WriteMore()
		}
		write(one)
		if !s.letOut() {
			break
		}
	}
	s.WriteArrayEnd()
}

// letOut writes what has piled up, and tells whether the client still takes it.
func (s *jsonStream) letOut() bool {
	return s.Buffered() <= streamBuffer || s.Flush() == nil // the stream keeps the error for the last Flush
}

// text writes a string that somebody else made up. Labels are valid UTF-8, but what a query makes of them, such as
// label_replace(up, "a", "\xff", "", ""), need not be, and JSON must.
func (s *jsonStream) text(v string) {
	if !utf8.ValidString(v) {
		v = strings.ToValidUTF8(v, string(utf8.RuneError))
	}
	s.WriteString(v)
}

func (s *jsonStream) next(field string) {
	s.WriteMore()
	s.WriteObjectField(field)
}

func (s *jsonStream) number(field string, n int64) {
	s.next(field)
	s.WriteInt64(n)
}

func (s *jsonStream) strings(all []string) { array(s, all, s.text) }

func (s *jsonStream) labels(ls labels.Labels) {
	s.WriteObjectStart()
	i := 0
	ls.Range(func(l labels.Label) {
		if i > 0 {
			s.WriteMore()
		}
		i++
		s.text(l.Name)
		s.WriteRaw(":")
		s.text(l.Value)
	})
	s.WriteObjectEnd()
}

// value writes the result of a query, and its statistics where there are any.
func (s *jsonStream) value(v parser.Value, statistics []byte, explained *explained) {
	s.WriteObjectStart()
	s.WriteObjectField("resultType")
	s.WriteString(string(v.Type()))
	s.next("result")
	switch v := v.(type) {
	case promql.Matrix:
		array(s, v, s.series)
	case promql.Vector:
		array(s, v, s.sample)
	case promql.Scalar: // with all its digits, as Prometheus writes scalars and nothing else
		s.WriteArrayStart()
		jsonutil.MarshalTimestamp(v.T, s.Stream)
		s.WriteMore()
		s.WriteString(decimal(v.V))
		s.WriteArrayEnd()
	case promql.String:
		s.WriteArrayStart()
		jsonutil.MarshalTimestamp(v.T, s.Stream)
		s.WriteMore()
		s.text(v.V)
		s.WriteArrayEnd()
	}
	if statistics != nil {
		s.next("stats")
		s.WriteRaw(string(statistics))
	}
	if explained != nil {
		s.next("explain")
		s.explanation(explained)
	}
	s.WriteObjectEnd()
}

func (s *jsonStream) series(one promql.Series) {
	s.WriteObjectStart()
	s.WriteObjectField("metric")
	s.labels(one.Metric)
	if len(one.Floats) > 0 {
		s.next("values")
		array(s, one.Floats, func(p promql.FPoint) { s.point(p.T, p.F) })
	}
	if len(one.Histograms) > 0 {
		s.next("histograms")
		array(s, one.Histograms, func(p promql.HPoint) { s.histogram(p.T, p.H) })
	}
	s.WriteObjectEnd()
}

func (s *jsonStream) sample(one promql.Sample) {
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
