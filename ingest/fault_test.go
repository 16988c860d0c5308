package ingest_test

import (
	"daybook/internal/table/tabletest"
)

var failSync = tabletest.Fault{Method: tabletest.Sync, Call: 1}
