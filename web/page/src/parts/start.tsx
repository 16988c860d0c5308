import { useSignal } from '@preact/signals';

/** The page of an empty store: how to send it something. */
export function Start() {
  const copied = useSignal(false);
  const lines = `remote_write:\n  - url: ${location.protocol}//${location.host}/api/v1/write\n`;
  // Only pages from https and localhost may write to the clipboard.
  const clipboard = (navigator as { clipboard?: Clipboard }).clipboard;
  return (
    <main class="start">
      <h1>Nothing stored yet.</h1>
      <p>
        Add these lines to <code>prometheus.yml</code> and reload Prometheus:
      </p>
      <div class="snippet">
        <pre>
          <code>{lines}</code>
        </pre>
        {clipboard !== undefined && (
          <button
            type="button"
            onClick={() => {
              void clipboard.writeText(lines).then(() => {
                copied.value = true;
                setTimeout(() => (copied.value = false), 2000);
              });
            }}
          >
            {copied.value ? 'Copied' : 'Copy'}
          </button>
        )}
      </div>
      <p class="waiting" role="status">
        <span class="dot" aria-hidden="true" />
        Waiting for the first samples. This page goes on by itself.
      </p>
    </main>
  );
}
