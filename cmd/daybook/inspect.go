package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"daybook/internal/datadir"
	"daybook/internal/index"
	"daybook/internal/table/embedded"
	"daybook/keys"
	"daybook/query"
)

// inspect prints what is stored of some series. A running daybook, which has the data directory to itself, is asked
// over HTTP; otherwise the directory is read.
func inspect(cmd *cobra.Command, selector string) error {
	c, err := loadConfig(cmd.Flags(), os.Environ())
	if err != nil {
		return err
	}
	if err := datadir.Check(c.DataDir); err != nil {
		return fmt.Errorf("there is nothing to inspect: %w", err)
	}
	dir, err := datadir.Open(c.DataDir)
	if errors.Is(err, datadir.ErrLocked) {
		return inspectRunning(cmd, c.Listen, selector)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return inspectDir(cmd, c, dir, selector)
}

func inspectRunning(cmd *cobra.Command, address, selector string) error {
	where := "http://" + address + "/api/v1/inspect?" + url.Values{"match[]": {selector}}.Encode()
	request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, where, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("a daybook is running with this data directory, but does not answer at its address (set --listen to where it listens): %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var failure struct{ Error string }
		_ = json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&failure) // the status says enough
		return fmt.Errorf("the running daybook at %s says %s: %s", address, answer.Status, failure.Error)
	}
	_, err = io.Copy(cmd.OutOrStdout(), answer.Body)
	return err
}

func inspectDir(cmd *cobra.Command, c config, dir *datadir.Dir, selector string) (err error) {
	log := newLogger(c.Log, cmd.ErrOrStderr())
	tables, err := embedded.Open(embedded.Config{Dir: dir.Table(), CacheBytes: int64(c.Table.Cache), Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tables.Close()) }()
	s, err := openStore(cmd.Context(), tables, c)
	if err != nil {
		return err
	}
	x, err := index.Open(cmd.Context(), s, keys.MonthOf(thisDay())-1, c.Query.MaxPastSeries)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "No daybook is running: samples that are only in the write-ahead log are not shown.")
	return query.Inspect(cmd.Context(), cmd.OutOrStdout(), s, x, selector)
}
