// Command daybook is a long-term metrics store for Prometheus. It only wires: flags and settings become the Config of
// each part, and the parts are started and stopped in order.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
)

// version and branch are set by the build.
var (
	version = "unreleased"
	branch  string
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once, which loses nothing either
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "daybook:", err)
		os.Exit(1)
	}
}

// run is the program without its process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:           "daybook",
		Short:         "A long-term metrics store for Prometheus",
		Long:          "daybook takes Prometheus remote_write, keeps years of samples in tables, and answers PromQL.\nWithout a command it serves.",
		Args:          noCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       versionText(),
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	root.RunE = func(cmd *cobra.Command, _ []string) error { return serveCommand(cmd) }
	configFlags(root.PersistentFlags())
	root.AddCommand(
		&cobra.Command{
			Use: "serve", Short: "Take writes and answer queries until stopped (the default)", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return serveCommand(cmd) },
		},
		&cobra.Command{
			Use: "check-config", Short: "Check the settings and print all of them, as a settings' file", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return checkConfig(cmd) },
		},
		&cobra.Command{
			Use: "inspect <selector>", Short: "Print what is stored of the series that a selector matches", Args: cobra.ExactArgs(1),
			Example: `  daybook inspect 'node_load1{instance="a:9100"}' --data-dir ./data`,
			RunE:    func(cmd *cobra.Command, args []string) error { return inspect(cmd, args[0]) },
		},
		&cobra.Command{
			Use: "version", Short: "Print the version", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText())
				return err
			},
		},
	)
	return root.ExecuteContext(ctx)
}

func versionText() string {
	revision, _ := stamps()
	if revision != "" {
		revision = ", revision " + revision
	}
	return fmt.Sprintf("daybook %s%s, %s %s/%s", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func checkConfig(cmd *cobra.Command) error {
	c, err := loadConfig(cmd.Flags(), os.Environ())
	if err != nil {
		return err
	}
	for _, s := range settings(&c) {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), s.line()); err != nil {
			return err
		}
	}
	return nil
}

func newLogger(c logConfig, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
