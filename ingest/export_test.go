package ingest

// Abandon lets go of the log's file as a crash would, without a flush.
func (in *Ingester) Abandon() error { return in.log.Close() }

// LogSize is how many bytes the write-ahead log has.
func (in *Ingester) LogSize() int64 { return in.log.Size() }

// Unflushed is how many samples are in memory only.
func (in *Ingester) Unflushed() int64 { return in.head.unflushed.Load() }

// Held is how much memory histograms and exemplars take that are not in the table.
func (in *Ingester) Held() int64 { return in.head.held.Load() }
