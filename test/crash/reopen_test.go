package crash

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"daybook/internal/series"
	"daybook/internal/table"
	"daybook/internal/table/embedded"
	"daybook/keys"
)

// reopenYesterday has the next daybook close yesterday again, as after a night in which it did not run: no test can
// wait for midnight. It sets back the mark that says which days are closed, as a clock that was ahead once does.
func reopenYesterday(dir string) (err error) {
	ctx := context.Background()
	svc, err := embedded.Open(embedded.Config{
		Dir: filepath.Join(dir, "table"), CacheBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	closed := series.MillisOf(time.Now()).Day() - 2
	return svc.Transact(ctx, keys.Tables("daybook").Meta(), "meta", []table.Operation{{
		Kind: table.InsertOrMerge, Row: "writer-a",
		Properties: []table.Property{{Name: "closed", Value: binary.AppendVarint(nil, int64(closed))}},
	}})
}
