package ingest

import (
	"bytes"

	"github.com/golang/snappy"
)

// markV2 stands in the log before a body of version 2.0. No body of version 1.0 that has something to store begins so: in
// snappy a zero byte says that it decodes to nothing.
var markV2 = []byte{0, 2}

// logged gives what goes into the log for a request: its body as it came, or, where something was refused, what was
// accepted, which version 1.0 can say whichever it came in.
func (r *request) logged(body []byte) []byte {
	switch {
	case r.accepted != nil:
		return snappy.Encode(nil, r.accepted)
	case r.version == v2:
		r.record = append(append(r.record[:0], markV2...), body...)
		return r.record
	}
	return body
}

// bodyOf is the reverse of logged.
func bodyOf(record []byte) (body []byte, v version) {
	if body, ok := bytes.CutPrefix(record, markV2); ok {
		return body, v2
	}
	return record, v1
}
