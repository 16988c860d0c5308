package table

import "sync/atomic"

// Tally counts the requests to one account of a table service, as its bill does: every request that reached the service
// is a billable operation, repeated ones too. Its fields may be used from many goroutines.
type Tally struct {
	Transactions atomic.Int64
	PointReads   atomic.Int64
	RangeReads   atomic.Int64 // pages of queries
	Others       atomic.Int64 // of tables and of the service itself

	Entities       atomic.Int64 // written, read and scanned
	Sent, Received atomic.Int64 // bytes of bodies as they travel

	Retries   atomic.Int64 // requests that repeat one
	Throttled atomic.Int64 // answers that said that the service is too busy
	Refused   atomic.Int64 // answers that a request is wrong, which no repeating mends
	Parallel  atomic.Int64 // how many requests may be under way at a time now
}
