package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDifferences sees to it that the comparison of answers finds what it is to find, and nothing else.
func TestDifferences(t *testing.T) {
	vector := func(items ...string) string {
		return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(items, ",") + `]}}`
	}
	item := func(label, v string) string { return `{"metric":{"a":"` + label + `"},"value":[1.5,"` + v + `"]}` }
	one, two := item("1", "0.1"), item("2", "2")
	for _, c := range []struct {
		name      string
		how       comparison
		got, want string
		same      bool
	}{
		{"the same", comparison{}, vector(one, two), vector(one, two), true},
		{"another order", comparison{}, vector(two, one), vector(one, two), true},
		{"another order, sorted", comparison{ordered: true}, vector(two, one), vector(one, two), false},
		{"another order of the same values, sorted", comparison{ordered: true}, vector(item("3", "0.1"), one, two), vector(one, item("3", "0.1"), two), true},
		{"one is missing", comparison{}, vector(one), vector(one, two), false},
		{"one too many", comparison{}, vector(one, two), vector(one), false},
		{"the last digit", comparison{}, vector(item("1", "0.30000000000000004")), vector(item("1", "0.3")), false},
		{"the last digit of a sum", comparison{summed: true}, vector(item("1", "0.30000000000000004")), vector(item("1", "0.3")), true},
		{"more than the last digits of a sum", comparison{summed: true}, vector(item("1", "0.3000000001")), vector(item("1", "0.3")), false},
		{"labels of a sum", comparison{summed: true}, vector(item("0.30000000000000004", "1")), vector(item("0.3", "1")), false},
		{"infinite", comparison{summed: true}, vector(item("1", "+Inf")), vector(item("1", "-Inf")), false},
		{"NaN", comparison{}, vector(item("1", "NaN")), vector(item("1", "NaN")), true},
		{"NaN and none", comparison{summed: true}, vector(item("1", "NaN")), vector(item("1", "0")), false},
		{"the time", comparison{}, strings.ReplaceAll(vector(one), "1.5", "1.501"), vector(one), false},
		{"a warning", comparison{}, strings.Replace(vector(one), "{", `{"warnings":["w"],`, 1), vector(one), false},
		{"an error", comparison{}, `{"status":"error","errorType":"execution","error":"a"}`, `{"status":"error","errorType":"execution","error":"b"}`, false},
		{"an empty list for none", comparison{}, `{"status":"success","data":[]}`, `{"status":"success","data":null}`, false},
	} {
		if said := c.how.difference(parsed(t, c.got), parsed(t, c.want)); (said == "") != c.same {
			t.Errorf("%s: the difference is %q", c.name, said)
		}
	}
}

func parsed(t *testing.T, text string) (a answer) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}
