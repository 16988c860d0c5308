package slot

import "fmt"

// The table of code lengths precedes the symbols; the package comment draws it. The lengths of neighbours are mostly close
// to each other, so that a table of ten classes takes six bytes or so.
const (
	runCountBits   = 5
	classRangeBits = 7
	lengthBits     = 4
	escape         = 3 // the 2 bits before a length that is not near the one before it

	maxTableBytes = 320
)

// putTable writes the table of the codes in t.
func putTable(w *bitWriter, t *huffman, fineness uint) {
	runs, lowest, highest := t.ranges()
	w.put(uint64(runs), runCountBits)
	putUsed(w, t, 0, runs)
	classes := 0
	if highest > 0 {
		classes = highest - lowest + 1
	}
	w.put(uint64(classes), classRangeBits+fineness)
	if classes > 0 {
		w.put(uint64(lowest), classRangeBits+fineness)
		putUsed(w, t, firstClass+lowest, classes)
	}
	if t.n > 1 {
		putLengths(w, t, runs, firstClass+lowest, classes)
	}
}

// ranges tells which part of the alphabet is used; highest is 0 where no class is.
func (t *huffman) ranges() (runs, lowest, highest int) {
	for _, u := range t.used[:t.n] {
		sym := int(u & 0xffff)
		if sym <= maxRunBits {
			runs = max(runs, sym+1)
			continue
		}
		class := sym - firstClass
		if highest == 0 {
			lowest = class
		}
		lowest, highest = min(lowest, class), max(highest, class)
	}
	return runs, lowest, highest
}

func putUsed(w *bitWriter, t *huffman, from, n int) {
	if n == 0 {
		return
	}
	full := true
	for sym := from; sym < from+n; sym++ {
		full = full && t.isUsed(sym)
	}
	if full {
		w.put(0, 1)
		return
	}
	w.put(1, 1)
	for sym := from; sym < from+n; sym++ {
		if t.isUsed(sym) {
			w.put(1, 1)
		} else {
			w.put(0, 1)
		}
	}
}

// isUsed tells whether a symbol occurs; a single symbol has a code of length 0.
func (t *huffman) isUsed(sym int) bool {
	return t.lens[sym] > 0 || (t.n == 1 && int(t.used[0]&0xffff) == sym)
}

func putLengths(w *bitWriter, t *huffman, runs, from, classes int) {
	before := uint8(0)
	put := func(l uint8) {
		switch {
		case l == 0:
			return
		case before == 0:
			w.put(uint64(l), lengthBits)
		case l+1 >= before && l <= before+1:
			w.put(uint64(l+1-before), 2)
		default:
			w.put(escape, 2)
			w.put(uint64(l), lengthBits)
		}
		before = l
	}
	for sym := 0; sym < runs; sym++ {
		put(t.lens[sym])
	}
	for sym := from; sym < from+classes; sym++ {
		put(t.lens[sym])
	}
}

// table decodes symbols.
type table struct {
	// entries, by the next bits of the stream, holds symbol<<16 | length of the code<<8 | length of the code and the plain
	// bits behind it.
	entries [1 << maxCode]uint32
	starts  [symbolCount]uint64 // what the plain bits are added to
	longest uint                // length of the longest code: entries has 1<<longest
	used    [symbolCount]uint16 // the symbols used, ascending
	lens    [symbolCount]uint8  // of their codes
	n       int
}

// read reads what putTable wrote.
func (t *table) read(r *bitReader, fineness uint) error {
	t.n = 0
	runs := int(r.take(runCountBits))
	if runs > maxRunBits+1 {
		return fmt.Errorf("%w: %d runs", ErrCorrupt, runs)
	}
	t.readUsed(r, 0, runs)
	if classes := int(r.take(classRangeBits + fineness)); classes > 0 {
		lowest := int(r.take(classRangeBits + fineness))
		if lowest == 0 || lowest+classes > maxClass+1 {
			return fmt.Errorf("%w: %d classes from %d", ErrCorrupt, classes, lowest)
		}
		if top := uint(lowest + classes - 1); top > highestClass(fineness) {
			return fmt.Errorf("%w: class %d", ErrCorrupt, top)
		}
		t.readUsed(r, firstClass+lowest, classes)
	}
	if !t.readLengths(r) {
		return fmt.Errorf("%w: code lengths", ErrCorrupt)
	}
	t.fill(fineness)
	return nil
}

// highestClass is the class of the greatest number.
func highestClass(fineness uint) uint {
	class, _ := classOf(1<<64-1, fineness)
	return class
}

func (t *table) readUsed(r *bitReader, from, n int) {
	if n == 0 {
		return
	}
	partly := r.take(1) == 1
	for sym := from; sym < from+n; sym++ {
		if !partly || r.take(1) == 1 {
			t.used[t.n] = uint16(sym)
			t.n++
		}
	}
}

// readLengths reads the lengths of the codes and checks that the codes are complete: every sequence of bits must mean
// something.
func (t *table) readLengths(r *bitReader) bool {
	t.longest = 0
	if t.n <= 1 {
		t.lens[0] = 0
		return t.n == 1
	}
	room, before := 1<<maxCode, 0
	for i := range t.n {
		l := before - 1
		if i == 0 {
			l = int(r.take(lengthBits))
		} else if step := int(r.take(2)); step == escape {
			l = int(r.take(lengthBits))
		} else {
			l += step
		}
		if l < 1 || l > maxCode {
			return false
		}
		room -= 1 << (maxCode - l)
		t.lens[i], before = uint8(l), l
		t.longest = max(t.longest, uint(l))
	}
	return room == 0
}

// fill gives out the canonical codes. Codes of one length are given out in the order of symbols, shorter ones first:
// each takes the next 1<<(longest-length) entries.
func (t *table) fill(fineness uint) {
	var count [maxCode + 2]uint16
	for _, l := range t.lens[:t.n] {
		count[l+1]++
	}
	next := firstCodes(&count)
	for i, sym := range t.used[:t.n] {
		width := symbolWidth(int(sym), fineness)
		t.starts[sym] = 1 << width
		if sym > maxRunBits {
			t.starts[sym], _ = classStart(uint(sym-firstClass), fineness)
		}
		l := uint(t.lens[i])
		from := int(next[l]) << (t.longest - l)
		next[l]++
		entry := uint32(sym)<<16 | uint32(l)<<8 | uint32(l+width)
		part := t.entries[from : from+1<<(t.longest-l)]
		for j := range part {
			part[j] = entry
		}
	}
}
