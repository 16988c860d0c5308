package web

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/http"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxRead is the most bytes that a remote read request may have, decompressed, as in Prometheus.
const maxRead = 32 << 20

// maxReads is how many remote reads are answered at a time; others wait. A stream may take longer than any query.
const maxReads = 10

const streamedType = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"

// remoteRead is POST /api/v1/read: Prometheus's remote read (https://prometheus.io/docs/prometheus/latest/querying/remote_read_api/),
// as samples in one message, or streamed as chunks, whichever the client names first.
func remoteRead(c *call) error {
	select {
	case c.server.reads <- struct{}{}:
		defer func() { <-c.server.reads }()
	case <-c.Request().Context().Done():
		return c.Request().Context().Err()
	}
	request, err := c.readRequest()
	if err != nil {
		return err
	}
	streamed, err := wantsStream(request.AcceptedResponseTypes)
	if err != nil {
		return badRequest(err)
	}
	queries, err := selectionsOf(request.Queries)
	if err != nil {
		return badRequest(err)
	}
	if streamed {
		return c.streamChunks(queries)
	}
	return c.sendSamples(queries)
}

func (c *call) readRequest() (*prompb.ReadRequest, error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, maxRead)
	arrived := c.hurry()
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &apiError{http.StatusRequestEntityTooLarge, badData, fmt.Errorf("the request has more than %d bytes", maxRead)}
	case err != nil:
		return nil, bodyError(fmt.Errorf("reading the request: %w", err))
	}
	arrived()
	if n, err := snappy.DecodedLen(body); err != nil || n > maxRead {
		return nil, badRequest(fmt.Errorf("the body is not a message compressed with snappy (block format) of at most %d bytes", maxRead))
	}
	if body, err = snappy.Decode(nil, body); err != nil {
		return nil, badRequest(fmt.Errorf("decompressing the request: %w", err))
	}
	request := new(prompb.ReadRequest)
	if err := request.Unmarshal(body); err != nil {
		return nil, badRequest(fmt.Errorf("the request is not a prometheus.ReadRequest: %w", err))
	}
	return request, nil
}

// wantsStream chooses the first type of answer that is known here.
func wantsStream(accepted []prompb.ReadRequest_ResponseType) (bool, error) {
	if len(accepted) == 0 {
		return false, nil // a client of before there was a choice
	}
	for _, one := range accepted {
		switch one {
		case prompb.ReadRequest_SAMPLES:
			return false, nil
		case prompb.ReadRequest_STREAMED_XOR_CHUNKS:
			return true, nil
		}
	}
	return false, fmt.Errorf("none of the response types %v is known: SAMPLES and STREAMED_XOR_CHUNKS are", accepted)
}

// selection is one query of a remote read.
type selection struct {
	from, to int64
	hints    *storage.SelectHints
	matchers []*labels.Matcher
}

func selectionsOf(queries []*prompb.Query) (all []selection, err error) {
	for i, q := range queries {
		one := selection{from: q.StartTimestampMs, to: q.EndTimestampMs, hints: hintsOf(q.Hints)}
		if one.matchers, err = matchersOf(q.Matchers); err != nil {
			return nil, fmt.Errorf("query %d: %w", i, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// hintsOf gives nil for hints without times, which would leave nothing of the query.
func hintsOf(h *prompb.ReadHints) *storage.SelectHints {
	if h == nil || h.StartMs == 0 && h.EndMs == 0 {
		return nil
	}
	return &storage.SelectHints{
		Start: h.StartMs, End: h.EndMs, Step: h.StepMs, Func: h.Func, Grouping: h.Grouping, By: h.By, Range: h.RangeMs,
	}
}

var matchTypes = map[prompb.LabelMatcher_Type]labels.MatchType{
	prompb.LabelMatcher_EQ: labels.MatchEqual, prompb.LabelMatcher_NEQ: labels.MatchNotEqual,
	prompb.LabelMatcher_RE: labels.MatchRegexp, prompb.LabelMatcher_NRE: labels.MatchNotRegexp,
}

func matchersOf(sent []*prompb.LabelMatcher) (all []*labels.Matcher, err error) {
	for _, m := range sent {
		kind, ok := matchTypes[m.Type]
		if !ok {
			return nil, fmt.Errorf("the matcher of label %q has the type %d, which is not known", m.Name, m.Type)
		}
		matcher, err := labels.NewMatcher(kind, m.Name, m.Value)
		if err != nil {
			return nil, fmt.Errorf("the matcher of label %q: %w", m.Name, err)
		}
		all = append(all, matcher)
	}
	return all, nil
}

// read hands each series of a query to a function, sorted by labels.
func (c *call) read(q selection, each func(storage.Series) error) error {
	querier, err := c.Reader.Queryable().Querier(q.from, q.to)
	if err != nil {
		return err
	}
	defer querier.Close()
	set := querier.Select(c.Request().Context(), true, q.hints, q.matchers...)
	for set.Next() {
		if err := each(set.At()); err != nil {
			return err
		}
	}
	return set.Err()
}

// sendSamples answers with a ReadResponse: the results of the queries in their order.
func (c *call) sendSamples(queries []selection) error {
	limit := &sampleLimit{left: c.server.cfg.MaxReadSamples, max: c.server.cfg.MaxReadSamples}
	var message []byte
	for _, q := range queries {
		var result []byte
		var it chunkenc.Iterator
		err := c.read(q, func(s storage.Series) error {
			it = s.Iterator(it)
			one, err := appendSeries(nil, s.Labels(), it, limit)
			if one != nil {
				result = appendField(result, 1, one)
			}
			return err
		})
		if err != nil {
			return err
		}
		message = appendField(message, 1, result)
	}
	header := c.Response().Header()
	header.Set("Content-Type", protobufType)
	header.Set("Content-Encoding", "snappy")
	c.Response().WriteHeader(http.StatusOK)
	_, err := c.server.patient(c).Write(snappy.Encode(nil, message))
	return err
}

// sampleLimit bounds what the answer to a remote read holds in memory.
type sampleLimit struct{ left, max int }

func (l *sampleLimit) take() error {
	if l.max == 0 {
		return nil
	}
	if l.left--; l.left < 0 {
		return badRequest(fmt.Errorf("exceeded sample limit (%d): more than query.max_read_samples; ask for less, or for STREAMED_XOR_CHUNKS", l.max))
	}
	return nil
}

// appendSeries appends a TimeSeries, or gives nil for one without samples. They are written by hand: prompb leaves out
// values that equal 0, and with them the sign of -0.
func appendSeries(b []byte, ls labels.Labels, it chunkenc.Iterator, limit *sampleLimit) ([]byte, error) {
	ls.Range(func(l labels.Label) {
		label := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), l.Name)
		label = protowire.AppendString(protowire.AppendTag(label, 2, protowire.BytesType), l.Value)
		b = appendField(b, 1, label)
	})
	empty := len(b)
	var scratch []byte
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		if err := limit.take(); err != nil {
			return nil, err
		}
		if kind == chunkenc.ValFloat {
			t, v := it.At()
			scratch = protowire.AppendFixed64(protowire.AppendTag(scratch[:0], 1, protowire.Fixed64Type), math.Float64bits(v))
			scratch = protowire.AppendVarint(protowire.AppendTag(scratch, 2, protowire.VarintType), uint64(t))
			b = appendField(b, 2, scratch)
			continue
		}
		one := histogramOf(kind, it)
		encoded, err := one.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding a histogram of %s: %w", ls, err)
		}
		b = appendField(b, 4, encoded)
	}
	if err := it.Err(); err != nil || len(b) == empty {
		return nil, err
	}
	return b, nil
}

func histogramOf(kind chunkenc.ValueType, it chunkenc.Iterator) prompb.Histogram {
	if kind == chunkenc.ValHistogram {
		return prompb.FromIntHistogram(it.AtHistogram(nil))
	}
	return prompb.FromFloatHistogram(it.AtFloatHistogram(nil))
}

func appendField(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// streamChunks answers with a ChunkedReadResponse a frame. No more than one series is in memory.
func (c *call) streamChunks(queries []selection) error {
	out := &frames{out: c.server.patient(c), most: c.server.cfg.MaxReadFrame}
	c.Response().Header().Set("Content-Type", streamedType)
	for i, q := range queries {
		if err := c.read(q, func(s storage.Series) error { return out.series(int64(i), s) }); err != nil {
			return err
		}
	}
	if !c.Response().Committed { // there is nothing to be sent
		c.Response().WriteHeader(http.StatusOK)
	}
	c.Response().Flush()
	return nil
}

// frames writes messages, each as its length (a uvarint), the CRC-32C of it (4 bytes, big-endian), and itself.
type frames struct {
	out    io.Writer
	most   int // bytes of chunks in a frame, or one chunk
	buffer []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (f *frames) frame(message []byte) error {
	f.buffer = binary.AppendUvarint(f.buffer[:0], uint64(len(message)))
	f.buffer = binary.BigEndian.AppendUint32(f.buffer, crc32.Checksum(message, castagnoli))
	f.buffer = append(f.buffer, message...)
	_, err := f.out.Write(f.buffer)
	return err
}

// series writes a series as chunks, in as many frames as it takes.
func (f *frames) series(query int64, s storage.Series) error {
	one := &prompb.ChunkedSeries{Labels: prompb.FromLabels(s.Labels(), nil)}
	room := f.most
	for _, l := range one.Labels {
		room -= l.Size()
	}
	left := room
	it := storage.NewSeriesToChunkEncoder(s).Iterator(nil)
	for it.Next() {
		chunk := it.At()
		one.Chunks = append(one.Chunks, prompb.Chunk{
			MinTimeMs: chunk.MinTime, MaxTimeMs: chunk.MaxTime,
			Type: prompb.Chunk_Encoding(chunk.Chunk.Encoding()), Data: chunk.Chunk.Bytes(),
		})
		if left -= one.Chunks[len(one.Chunks)-1].Size(); left > 0 {
			continue
		}
		if err := f.chunks(query, one); err != nil {
			return err
		}
		left = room
	}
	if err := it.Err(); err != nil {
		return err
	}
	if len(one.Chunks) == 0 {
		return nil
	}
	return f.chunks(query, one)
}

// chunks writes what has gathered.
func (f *frames) chunks(query int64, s *prompb.ChunkedSeries) error {
	message, err := (&prompb.ChunkedReadResponse{ChunkedSeries: []*prompb.ChunkedSeries{s}, QueryIndex: query}).Marshal()
	if err != nil {
		return fmt.Errorf("encoding chunks: %w", err)
	}
	s.Chunks = s.Chunks[:0]
	return f.frame(message)
}
