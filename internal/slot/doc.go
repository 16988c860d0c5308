// Package slot turns samples into bytes and back: a slot is the samples of one series for an hour, or for a dense whole
// day. It keeps every sample bit for bit and knows nothing of where slots are kept.
package slot
