package e2e

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// How long the page may take to draw, on a busy machine.
const drawnWithin = 30 * time.Second

// drawn is true once a chart has a line: uPlot's canvas has enough pixels that are of a colour (axes and grid are grey).
const drawn = `[...document.querySelectorAll('.u-wrap canvas')].some((canvas) => {
	if (canvas.width === 0 || canvas.height === 0) return false;
	const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
	let coloured = 0;
	for (let i = 0; i < data.length; i += 4) {
		const spread = Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]);
		if (data[i + 3] > 100 && spread > 40) coloured++;
	}
	return coloured > 200;
})`

// TestPageShowsChart opens the page in a browser and sees a line where the recording has one.
func TestPageShowsChart(t *testing.T) {
	d := startDaybook(t, "20s")
	replay(t, d, readRecording(t).endingAt(t, time.Now()))
	ctx := startBrowser(t)
	pageErrors := watchConsole(ctx)

	if err := chromedp.Do(ctx,
		chromedp.EmulateViewport(1280, 800),
		chromedp.Navigate(string(d.api)+"/"),
		chromedp.WaitVisible(chromedp.CSS("input")),
	); err != nil {
		t.Fatalf("the page has no search box (is web/page built? make build): %v", err)
	}
	link := url.Values{"m": {`node_cpu_seconds_total{cpu="0"}`}}
	if err := chromedp.Do(ctx,
		chromedp.Navigate(string(d.api)+"/#/?"+link.Encode()),
		chromedp.Reload(), // a link that changes the fragment alone loads nothing
	); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](drawn,
		chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(drawnWithin)))
	savePicture(ctx, t, "page.png")
	if err != nil {
		t.Errorf("no chart within %s: %v", drawnWithin, err)
	}
	for _, message := range pageErrors() {
		t.Errorf("the page says: %s", message)
	}
}

// startBrowser starts a browser without a window that keeps to itself, and gives the context of its tab.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	if bin := os.Getenv("DAYBOOK_BROWSER"); bin != "" {
		options = append(options, chromedp.ExecPath(bin))
	}
	ctx, cancelAllocator := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancelAllocator)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(cancelTab)
	return ctx
}

// watchConsole listens to what the page writes to the console. The function that it gives ends that and tells the errors
// that came, exceptions nobody caught and failed requests among them.
func watchConsole(ctx context.Context) (pageErrors func() []string) {
	ctx, stop := context.WithCancel(ctx)
	messages := chromedp.Console(ctx)
	found := make(chan []string)
	go func() {
		var said []string
		for m, err := range messages {
			if err != nil {
				break
			}
			if m.IsException() || m.Type == chromedp.ConsoleError {
				said = append(said, m.String())
			}
		}
		found <- said
	}()
	return func() []string {
		stop()
		return <-found
	}
}

func savePicture(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Errorf("picture of the page: %v", err)
		return
	}
	if err := os.MkdirAll("artifacts", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("artifacts", name), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
