// Package slot turns samples into bytes and back: a slot is the samples of one series for an hour, or for a dense whole
// day. It keeps every sample bit for bit, needs a little over a byte for a reading with two decimal places and next to
// nothing for what does not change, and knows nothing of where slots are kept. Native histograms and exemplars have
// slots of their own; the first byte tells the kinds apart.
//
// # A slot of floats
//
//	+---------+-------+-------+-------+------------+------------+------------+-------+
//	| version | start | count | first | last       | times      | values     | check |
//	| 1       | v     | v     | v     | v          | sequence   |            | 2     |
//	+---------+-------+-------+-------+------------+------------+------------+-------+
//	                          \ count > 0 ...       \ irregular  \ count > 0
//
// v is a varint of encoding/binary; z, below, a varint of a zigzagged number (0, -1, 1, -2 as 0, 1, 2, 3), which start is
// too. Whatever stands as bits is written from the highest bit of a byte downwards and padded with zeros to a whole byte.
//
//	version  0x10, plus 1 if the values are "xor", plus 2 if the times are irregular. 0x80 and above never occur.
//	start    z: the hour the slot begins with, in hours since 1970
//	count    the number of samples, less than 1<<22
//	first    the time of the first sample, in ms after the start
//	last     only where count > 1; regular times: the interval in ms, and no times follow;
//	         irregular: the time of the last sample in ms after the first
//	times    irregular only: the times in ms as a sequence, whose first number stands above
//	check    the low 16 bits of CRC-32C of all bytes before, little endian
//
// # Values, encoding "decimal"
//
// Value i is the float64 nearest to integer i / 10^exponent, as division gives it. Exceptions are values that are not, or
// are so rarely: NaN and the stale marker, infinities, -0, large and tiny numbers.
//
//	+------+-------+--------------------------+----------+----------------------------+
//	| head | first | exceptions               | integers | steps                      |
//	| 1    | z     | v count, then for each   | sequence | z first, sequence          |
//	+------+-------+--------------------------+----------+----------------------------+
//	                \ head & 32                \ count > 1 \ head & 64
//
//	head        bits 0-4: exponent, 0 to 22; 32: there are exceptions; 64: there are steps
//	first       the first integer
//	exception   v (samples since the end of the last one) << 2 | lasts << 1 | stale
//	            v how many samples it lasts, less 2 (lasts only)
//	            8 bytes, the float64, little endian (unless stale: then it is 0x7ff0000000000002)
//	steps       how many float64s further value i lies than the nearest decimal does: sums of decimals are off by a few
//
// # Values, encoding "xor"
//
// 64 bits, the first value; then for each further one, by the exclusive or of its bits with the one before:
//
//	0                                            the same value
//	10 <width bits>                              it differs within the window of the last 11
//	11 <5 bits: leading> <6: width-1> <width>    a new window: width bits behind leading zeros
//
// # A sequence
//
// Integers x[1], x[2] ... where x[0] is known. What is written are residuals r[i], by the order that makes them smallest:
//
//	0  plain         x[i] = x[0] + step * (base + r[i])
//	1  delta         x[i] = x[i-1] + step * (base + r[i])
//	2  delta-delta   x[i] = x[i-1] + step * d[i], d[i] = d[i-1] + r[i], d[0] = base
//
//	+------+------+------+-------+-----------------------------------+
//	| head | step | base | table | symbols                           |
//	| 1    | v    | z    | bits  | bits                              |
//	+------+------+------+-------+-----------------------------------+
//	        \ & 32 \ & 64
//
//	head   bits 0-1: order; 2-3: fineness f, 0 to 2; 16: residuals are zigzagged; 32, 64: step, base present (else 1, 0)
//
// Zeros are written as runs: symbol k, 0 to 22, and k bits stand for 1<<k or more zeros. Another residual u is written as
// its class and some plain bits, its place in the class. Where u has w+f+1 bits (w = 0 for all shorter ones), the class is
// w<<f + u>>w and the place is the lowest w bits. Symbols of runs and classes have canonical Huffman codes of at most 12
// bits: codes of one length ascend by symbol, runs before classes, and longer ones follow shorter ones. The table:
//
//	5 bits      how many symbols of runs
//	1 bit       0: all of them are used; 1: for each of them follows a bit that tells  (only if there are any)
//	7+f bits    how many classes
//	7+f bits    the lowest class, and again 1 bit, or more, for which are used          (only if there are any)
//	4 bits      length of the code of the first symbol used                            (only if two or more are used)
//	2 or 6      for each further one: 00 one shorter than the last, 01 equal, 10 one longer, 11 and 4 bits: the length
//
// A symbol that is alone has a code of no bits: a sequence that is all alike takes five bytes.
//
// # An example
//
// From 2026-11-30T23:00Z on, every 15 s: 20, 20, 20, 20.5, 21, 20.5, 20.5, 20, 20, 20, 20 and the stale marker, which are
// 24 bytes:
//
//	10          version 1, decimal, regular
//	be f3 3c    start: hour 498911
//	0c          12 samples
//	00          the first at the start itself
//	98 75       15000 ms apart
//	21          exponent 1, with exceptions
//	90 03       the first integer is 200
//	01          one exception:
//	2d          after 11 samples, a stale marker
//	20          plain, fineness 0, not zigzagged, with a step; no base
//	05          step 5: what remains is r = 0 0 1 2 1 1 0 0 0 0 0
//	1d 82 02 37 1b 10 e8
//	            00011 1 011               3 symbols of runs: of 1, of 2-3, of 4-7; used are the last two
//	            0000010 0000001 0         2 classes from class 1 on: 1, 2-3; all used
//	            0011 01 11 0001 10        lengths 3 3 1 2, that is, codes 110 111 0 10
//	            110 0                     a run of 2
//	            0 10 0 0 0                1, 2 (class 2, place 0), 1, 1
//	            111 01                    a run of 5, of which the last stands for the exception
//	            000                       padding
//	2b 77       check
//
// # A slot of histograms
//
// Times and sums are what a slot of floats is for: one stands in front. The rest of each histogram is a record of the
// body.
//
//	+---------+--------+----------------+---------------+-------+
//	| version | length | sums           | body          | check |
//	| 1       | v      | slot of floats | record ...    | 2     |
//	+---------+--------+----------------+---------------+-------+
//
//	version  0x20, plus 1 if the body is "packed": a zstd frame, which has the length of what is in it
//	length   of the slot of sums
//
// A record keeps what the sender sent, in the layout that he chose. Mostly that is the layout of the histogram before,
// and its numbers are little more.
//
//	+------+------+--------+-----------------+-----------+-----------+-------+
//	| head | hint | layout | count of zeros  | positive  | negative  | count |
//	| 1    | 1    |        | n               | n ...     | n ...     | n     |
//	+------+------+--------+-----------------+-----------+-----------+-------+
//	        \ & 8  \ & 4
//
//	head    bits 0-1: 0 an integer histogram; 1 a float histogram, all of whose numbers are whole; 2 any float histogram
//	        4: a layout follows, and numbers stand for themselves. Otherwise the layout is that of the histogram before,
//	        which is of the same kind, and each number is the difference to the same one there
//	        8: the counter reset hint follows. Otherwise it is the one before, of the first histogram 0
//	layout  z schema; 8 bytes, the zero threshold; twice, for positive and negative: v how many spans, for each of them
//	        z offset, v length; v how many positive and v how many negative numbers; v how many custom values, each of 8
//	        bytes
//	n       kinds 0 and 1: z. Buckets are counts, not differences of neighbours as in an integer histogram. count is what
//	        is more than zeros and buckets together: mostly 0
//	        kind 2: a float64, of which "difference" is the exclusive or: a byte, 16 times the number of zero bytes in
//	        front and the number of bytes that follow; then these, the highest first. What is missing are zeros
//
// Arithmetic is modulo 1<<64. The spans may promise other numbers of buckets than there are: nobody here looks.
//
// # A slot of exemplars
//
//	+---------+-------+-------+-------+------+--------------+-------+
//	| version | start | count | first | last | body         | check |
//	| 1       | z     | v     | v     | v    | exemplar ... | 2     |
//	+---------+-------+-------+-------+------+--------------+-------+
//	                          \ count > 0
//
//	version   0x30, plus 1 if the body is packed, as above
//	first     as in a slot of floats
//	last      the time of the last one in ms after the first
//	exemplar  v ms since the one before, of the first 0
//	          a float64 as in a record of kind 2, by its difference to the value before, of the first to 0
//	          v how many labels; for each v length and name, v length and value
//
// # Trust
//
// Decode is safe with any bytes: it never panics, and a slot makes it allocate no more than the samples it claims to have,
// at most 64 MiB. DecodeHistograms and DecodeExemplars take at most MaxBytes, 64 MiB, for what is packed, and at most as
// much again for what comes of it, which is also no more than some 100 times the bytes that are there. Whether there can
// be as many things as are claimed is checked against the bytes that are left before memory is taken for them; spans are
// two numbers each and never expanded. The check finds damage by accident, not by intent.
package slot
