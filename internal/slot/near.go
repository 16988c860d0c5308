package slot

import (
	"math"
	"math/bits"
	"slices"

	"daybook/internal/series"
)

// A sum of decimals is no decimal: each addition rounds in binary, and a counter of seconds that grew by nanoseconds reads
// 196.57500000000002. Such values are decimals but for a few units in the last binary place, and those change little from
// one sample to the next. The integers of encoding "decimal" then stand for the nearest decimals, and a second sequence
// holds the distances, in steps from one float64 to the next.

// near returns the integer of the decimal nearest to v, and how many steps above it v is.
func near(v, pow float64) (k, steps int64) {
	k = int64(math.RoundToEven(float64(v * pow)))
	return k, int64(math.Float64bits(v) - math.Float64bits(float64(k)/pow))
}

// maxSteps bounds the distance: a value further from its decimal is an exception.
const maxSteps = 1 << 30

// fitNear is as fit, but with distances in steps; false means that the values are not near decimals.
func (d *decimalEncoder) fitNear(samples []series.Sample) bool {
	exponent, ok := nearExponent(samples)
	if !ok {
		return false
	}
	d.exponent = exponent
	d.exceptions = d.exceptions[:0]
	d.ints = slices.Grow(d.ints[:0], len(samples))[:len(samples)]
	d.steps = slices.Grow(d.steps[:0], len(samples))[:len(samples)]
	allowed := 4 + len(samples)/16
	pow := powersOfTen[exponent]
	for i := range samples {
		k, steps := near(samples[i].V, pow)
		if uint64(k+maxInt-1) < 2*maxInt-1 && uint64(steps+maxSteps) < 2*maxSteps {
			d.ints[i], d.steps[i] = k, steps
			continue
		}
		d.except(i, samples[i].V)
		d.steps[i] = 0
		if i > 0 {
			d.steps[i] = d.steps[i-1]
		}
		if len(d.exceptions) > allowed {
			return false
		}
	}
	d.fillFront()
	return true
}

// nearExponent finds the exponent that explains some of the values best: a float64 has 53 bits, and what integer and steps
// leave of them is how unlikely it is that a random number is so near to a decimal.
func nearExponent(samples []series.Sample) (best int, ok bool) {
	const (
		probes = 16
		enough = 4 // bits a value
	)
	var values [probes]float64
	n := 0
	stride := max(1, len(samples)/probes)
	for i := 0; i < len(samples) && n < probes; i += stride {
		if v := math.Abs(samples[i].V); v > 0 && v <= maxInt {
			values[n] = v
			n++
		}
	}
	most := enough*n - 1
	for e := range powersOfTen {
		sum := 0
		for _, v := range values[:n] {
			k, steps := near(v, powersOfTen[e])
			sum += 53 - bits.Len64(uint64(k)) - bits.Len64(zigzag(steps))
		}
		if sum > most {
			most, best, ok = sum, e, true
		}
	}
	return best, ok
}

// addSteps reads the distances of the decimals in out and adds them; b begins with the first.
func (d *decoder) addSteps(out []series.Sample, b []byte) ([]byte, error) {
	p := parser{b: b}
	first := unzigzag(p.uvarint())
	if p.err != nil {
		return nil, p.err
	}
	addSteps(out[:1], []int64{first})
	return d.readInts(out[1:], p.b, first, addSteps)
}

func addSteps(out []series.Sample, steps []int64) {
	out = out[:len(steps)]
	for i, n := range steps {
		out[i].V = math.Float64frombits(math.Float64bits(out[i].V) + uint64(n))
	}
}
