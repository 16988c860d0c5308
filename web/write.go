package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	"daybook/ingest"
)

const (
	protobufType = "application/x-protobuf"
	protoV1      = "prometheus.WriteRequest"
	retryAfter   = "5" // seconds
)

// bodies lends out buffers for the bodies of writes.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

const maxKeptBody = 1 << 20

// write is remote write 1.0 (https://prometheus.io/docs/specs/prw/remote_write_spec/): 204 when all is stored, 400 with
// the reason when some of it cannot be, which is final, and 503 when the sender should come again.
func write(c *call) error {
	if err := checkWriteHeaders(c.Request().Header); err != nil {
		return err
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
	if _, err := c.Ingester.Write(c.Request().Context(), body); err != nil {
		return writeAnswer(c, err)
	}
	return c.NoContent(http.StatusNoContent)
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

// checkWriteHeaders answers 415 to every type and encoding but protobuf of version 1.0 in snappy, so that senders of
// others fall back to that.
func checkWriteHeaders(h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "snappy") {
		return unsupported(fmt.Errorf("Content-Encoding %q: only snappy is taken", encoding))
	}
	contentType := h.Get("Content-Type")
	if contentType == "" {
		return nil // senders of before 1.0 was written down
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != protobufType {
		return unsupported(fmt.Errorf("Content-Type %q: only %s is taken", contentType, protobufType))
	}
	if proto := params["proto"]; proto != "" && proto != protoV1 {
		return unsupported(fmt.Errorf("Content-Type %q: of the messages only proto=%s is taken (remote write 1.0)", contentType, protoV1))
	}
	return nil
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
