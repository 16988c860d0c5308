// Package keys decides where in the tables a thing lives: series ids, buckets, partition and row keys, table and
// property names. All of it is pure functions of their arguments; every process computes the same names with no
// coordination. Keys and names are made of [0-9a-z_-] only (names without the dash): labels never go into one.
//
// The whole database, with the default prefix "daybook", the series
// up{instance="a:9100",job="node"} (id 3252f164…), the day 2026-11-30 and the writer "a":
//
//	table              partition  row                                       properties
//	daybookmeta        meta       store                                     version, buckets
//	daybookmeta        meta       writer-a                                  closed, highest
//	daybookmeta        metadata   cdf84a4d…                                 family
//	daybookcat202611   20         3252f164…                                 labels
//	daybookring        20         3252f164…                                 h00_a … h25_a, n00_a …, x00_a …
//	daybookraw202611   20         3252f164…-479212                          d_a, dn_a, dx_a, h00_a … h23_a, n00_a …
//
// Partition. The bucket: the first one, two or three hexadecimal digits of the part of the id that depends on all
// labels, and the tenant behind it where there is one ("20-acme"). Hash first, so that the writes of one moment
// scatter over all partitions.
//
// Row. The id begins with a hash of the metric name, so the series of one metric are neighbours in each partition.
// In a page's row the reversed day follows, six digits: 499999 minus the day, so that the newest page of a series
// sorts first:
//
//	day -500000 … 999999       day 0 (1970-01-01) … 499999       day 20787 (2026-11-30) … 479212
//
// Properties. hNN_w is one hour's slot of writer w: NN is the hour of the day in a page, hours since 1970 mod 26 in
// the ring. d_w is a whole day's slot. These hold floats; native histograms of the hour are in nNN_w and of the day in
// dn_w, exemplars in xNN_w and dx_w. A value over 64 KiB goes on in hNN_w_1, hNN_w_2 and so on, and one too large
// for its entity in rows of its own: "-", the property's name and a number behind the row ("…-479212-d_a-00").
//
// Metadata. What is known of a metric family is an entity of its own, in a partition for each tenant ("metadata-acme");
// its row is a hash of the family's name.
package keys
