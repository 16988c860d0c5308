package slot

import "testing"

// TestHuffmanLimit: counts that grow like Fibonacci's numbers make the longest codes there are; they are cut to the limit,
// the codes stay complete and the reader finds the same ones.
func TestHuffmanLimit(t *testing.T) {
	for n := 2; n <= 40; n++ {
		var tallies []tally
		a, b := uint32(1), uint32(1)
		for i := range n {
			tallies = append(tallies, tally{sym: uint16(firstClass + 1 + 3*i), n: a})
			a, b = b, min(a+b, 1<<22)
		}
		var h huffman
		h.build(tallies)
		room := 1 << maxCode
		for _, s := range tallies {
			room -= 1 << (maxCode - h.lens[s.sym])
		}
		if room != 0 {
			t.Errorf("%d symbols: the codes are not complete: %d", n, room)
		}
		buf := make([]byte, maxTableBytes)
		w := bitWriter{b: buf}
		putTable(&w, &h, maxFineness)
		var tab table
		if err := tab.read(&bitReader{b: buf[:w.end()]}, maxFineness); err != nil {
			t.Fatalf("%d symbols: %v", n, err)
		}
		for _, s := range tallies {
			c := h.codes[s.sym]
			if e := tab.entries[uint(c.bits)<<(tab.longest-uint(c.len))]; e>>16 != uint32(s.sym) {
				t.Errorf("%d symbols: the code of %d means %d", n, s.sym, e>>16)
			}
		}
	}
}
