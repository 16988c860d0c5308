package crash

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"testing"
	"time"

	jsoniter "github.com/json-iterator/go"
)

// point is a sample that daybook has.
type point struct {
	t int64
	v float64
}

// readAll asks for all samples of all series of the tests.
func (d *daybook) readAll(t *testing.T) map[string][]point {
	t.Helper()
	form := url.Values{
		"query": {`{__name__=~"crash_.+"}[30d]`},
		"time":  {fmt.Sprint(time.Now().Add(20 * time.Minute).Unix())},
	}
	resp, err := reading.PostForm(d.url+"/api/v1/query", form)
	if err != nil {
		t.Fatalf("reading everything: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("reading everything: status %d, %v: %.500s", resp.StatusCode, err, body)
	}
	found, err := parseMatrix(body)
	if err != nil {
		t.Fatalf("reading everything: %v: %.500s", err, body)
	}
	return found
}

// parseMatrix reads an answer of the query API.
func parseMatrix(body []byte) (map[string][]point, error) {
	found := map[string][]point{}
	it := jsoniter.ParseBytes(jsoniter.ConfigFastest, body)
	each := func(it *jsoniter.Iterator, fields map[string]func()) {
		for field := it.ReadObject(); field != ""; field = it.ReadObject() {
			if f := fields[field]; f != nil {
				f()
			} else {
				it.Skip()
			}
		}
	}
	one := func() {
		labels := map[string]string{}
		var points []point
		each(it, map[string]func(){
			"metric": func() { it.ReadVal(&labels) },
			"values": func() {
				for it.ReadArray() {
					points = append(points, parsePoint(it))
				}
			},
		})
		key := keyOf(labels)
		if _, ok := found[key]; ok {
			it.ReportError("matrix", "the series "+key+" comes twice")
		}
		found[key] = points
	}
	each(it, map[string]func(){"data": func() {
		each(it, map[string]func(){"result": func() {
			for it.ReadArray() {
				one()
			}
		}})
	}})
	if it.Error != nil && !errors.Is(it.Error, io.EOF) {
		return nil, it.Error
	}
	return found, nil
}

// parsePoint reads [seconds,"value"].
func parsePoint(it *jsoniter.Iterator) (p point) {
	it.ReadArray()
	p.t = int64(math.Round(it.ReadFloat64() * 1000))
	it.ReadArray()
	text := it.ReadString()
	it.ReadArray()
	v, err := parseValue(text)
	if err != nil {
		it.ReportError("value", err.Error())
	}
	p.v = v
	return p
}

// difference is what is wrong, by kind; all zero is right.
type difference struct {
	lost, altered, invented, twice int
	examples                       []string
}

func (d *difference) note(counter *int, format string, args ...any) {
	*counter++
	if *counter <= 3 {
		d.examples = append(d.examples, fmt.Sprintf(format, args...))
	}
}

// compare holds what daybook has against the ledger: all that must be there is there once and bit for bit, and
// nothing is that was never sent.
func (l *ledger) compare(found map[string][]point) (d difference) {
	for key := range found {
		if l.byKey[key] == nil {
			d.note(&d.invented, "a series that was never sent: %s", key)
		}
	}
	for _, k := range l.tracks {
		k.compare(found[k.key], &d)
	}
	return d
}

func (k *track) compare(found []point, d *difference) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := 0
	for j, p := range found {
		if j > 0 && p.t <= found[j-1].t {
			d.note(&d.twice, "%s: the time %s comes behind %s", k.key, clock(p.t), clock(found[j-1].t))
			continue
		}
		for ; i < len(k.sent) && k.sent[i].t < p.t; i++ {
			k.missing(i, d)
		}
		if i == len(k.sent) || k.sent[i].t != p.t {
			d.note(&d.invented, "%s: a sample at %s that was never sent", k.key, clock(p.t))
			continue
		}
		if want := k.sent[i].v; math.Float64bits(want) != math.Float64bits(p.v) && !(math.IsNaN(want) && math.IsNaN(p.v)) {
			d.note(&d.altered, "%s at %s: %v, sent was %v", k.key, clock(p.t), p.v, want)
		}
		i++
	}
	for ; i < len(k.sent); i++ {
		k.missing(i, d)
	}
}

func (k *track) missing(i int, d *difference) {
	if k.sent[i].must {
		d.note(&d.lost, "%s: the sample at %s was acknowledged and is gone", k.key, clock(k.sent[i].t))
	}
}

// settle notes that all that daybook has after a start must stay: it came from the disk.
func (l *ledger) settle(found map[string][]point) {
	for key, points := range found {
		k := l.byKey[key]
		k.mu.Lock()
		for _, p := range points {
			if i, ok := k.search(p.t); ok {
				k.sent[i].must = true
			}
		}
		k.mu.Unlock()
	}
}

func clock(t int64) string { return time.UnixMilli(t).UTC().Format("2006-01-02T15:04:05.000") }

// verify reads everything back and fails the test where something is wrong. It gives how many samples there are.
func (d *daybook) verify(t *testing.T, l *ledger) (samples int) {
	t.Helper()
	found := d.readAll(t)
	wrong := l.compare(found)
	if wrong.lost+wrong.altered+wrong.invented+wrong.twice > 0 {
		all, must := l.counts()
		t.Fatalf("of %d samples sent and %d acknowledged %d are lost, %d altered, %d twice, and %d were never sent:\n%s",
			all, must, wrong.lost, wrong.altered, wrong.twice, wrong.invented, lines(wrong.examples))
	}
	for _, points := range found {
		samples += len(points)
	}
	return samples
}

// verifyStart is verify after a start: what is there now must stay.
func (d *daybook) verifyStart(t *testing.T, l *ledger) (samples int) {
	t.Helper()
	found := d.readAll(t)
	wrong := l.compare(found)
	if wrong.lost+wrong.altered+wrong.invented+wrong.twice > 0 {
		return d.verify(t, l) // says what is wrong
	}
	l.settle(found)
	for _, points := range found {
		samples += len(points)
	}
	return samples
}
