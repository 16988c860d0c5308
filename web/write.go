package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"daybook/ingest"
)

const (
	protobufType = "application/x-protobuf"
	protoV1      = "prometheus.WriteRequest"
	protoV2      = "io.prometheus.write.v2.Request"
	retryAfter   = "5" // seconds
)

// The headers in which an answer to remote write 2.0 says what was stored.
const (
	samplesWritten    = "X-Prometheus-Remote-Write-Samples-Written"
	histogramsWritten = "X-Prometheus-Remote-Write-Histograms-Written"
	exemplarsWritten  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

// bodies lends out buffers for the bodies of writes.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

const maxKeptBody = 1 << 20

// write is remote write 1.0 and 2.0 (https://prometheus.io/docs/specs/prw/remote_write_spec/ and .../remote_write_spec_2_0/):
// 204 when all is stored, 400 with the reason when some of it cannot be, which is final, and 503 when the sender should
// come again.
func write(c *call) error {
	proto, err := checkWriteHeaders(c.Request().Header)
	if err != nil {
		return err
	}
	if proto == protoV2 {
		c.written(ingest.Result{}) // until it is known better
	}
	buffer := bodies.Get().(*[]byte)
	defer func() {
		if cap(*buffer) <= maxKeptBody {
			bodies.Put(buffer)
		}
	}()
	body, err := c.readBody((*buffer)[:0])
	*buffer = body
	if err != nil {
		return err
	}
	if proto == protoV2 {
		var stored ingest.Result
		stored, err = c.Ingester.WriteV2(c.Request().Context(), body)
		c.written(stored)
	} else {
		_, err = c.Ingester.Write(c.Request().Context(), body)
	}
	if err != nil {
		return writeAnswer(c, err)
	}
	return c.NoContent(http.StatusNoContent)
}

// written says what was stored. A sender takes an answer without that for one of a receiver that knows 1.0 only.
func (c *call) written(r ingest.Result) {
	h := c.Response().Header()
	h.Set(samplesWritten, strconv.Itoa(r.Samples))
	h.Set(histogramsWritten, strconv.Itoa(r.Histograms))
	h.Set(exemplarsWritten, strconv.Itoa(r.Exemplars))
}

func writeAnswer(c *call, err error) error {
	var refused *ingest.RefusedError
	switch {
	case errors.As(err, &refused), errors.Is(err, ingest.ErrMessage):
		return badRequest(err)
	case errors.Is(err, ingest.ErrTooLarge):
		return &apiError{http.StatusRequestEntityTooLarge, badData, err}
	case errors.Is(err, ingest.ErrUnavailable):
		c.Response().Header().Set("Retry-After", retryAfter)
		return &apiError{http.StatusServiceUnavailable, unavailable, err}
	}
	return err
}

// checkWriteHeaders says which message it is, and answers 415 to every type and encoding but protobuf in snappy, so that
// senders of others fall back to that. The type is read as RFC 9110 says: what is no such thing is not taken for 1.0.
func checkWriteHeaders(h http.Header) (proto string, err error) {
	encoding := strings.Join(h.Values("Content-Encoding"), ", ")
	if encoding != "" && !strings.EqualFold(encoding, "snappy") {
		return "", unsupported(fmt.Errorf("Content-Encoding %q: only snappy is taken", encoding))
	}
	contentType := strings.Join(h.Values("Content-Type"), ", ")
	if contentType == "" {
		return protoV1, nil // senders of before 1.0 was written down
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != protobufType {
		return "", unsupported(fmt.Errorf("Content-Type %q: only %s is taken", contentType, protobufType))
	}
	switch proto, given := params["proto"]; {
	case !given || proto == protoV1:
		return protoV1, nil
	case proto == protoV2:
		return protoV2, nil
	}
	return "", unsupported(fmt.Errorf("Content-Type %q: of the messages proto=%s (remote write 1.0) and proto=%s (2.0) are taken", contentType, protoV1, protoV2))
}

func unsupported(err error) error {
	return &apiError{http.StatusUnsupportedMediaType, badData, err}
}

// firstBuffer is the most memory that is taken for a body before any of it is there.
const firstBuffer = 1 << 20

// readBody appends the body to b.
func (c *call) readBody(b []byte) ([]byte, error) {
	r, limit := c.Request(), c.server.cfg.MaxBody
	tooLarge := &apiError{http.StatusRequestEntityTooLarge, badData,
		fmt.Errorf("the body has more than %d bytes (ingest.max_body): send less at a time", limit)}
	if r.ContentLength > int64(limit) {
		return b, tooLarge
	}
	arrived := c.hurry()
	if n := min(int(r.ContentLength)+1, firstBuffer); n > cap(b) {
		b = make([]byte, 0, n)
	}
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if len(b) > limit {
			return b, tooLarge
		}
		if errors.Is(err, io.EOF) {
			arrived()
			return b, nil
		}
		if err != nil {
			return b, bodyError(fmt.Errorf("reading the body: %w", err))
		}
	}
}
