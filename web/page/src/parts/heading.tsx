import { input, open } from '../suggest';
import {
  canRate,
  go,
  lines,
  matching,
  metric,
  place,
  rateOn,
  selector,
  unit,
  window,
} from '../state';
import { count } from '../units';

export function Heading() {
  const text = metric.value === '' ? selector.value : metric.value;
  return (
    <div class="heading">
      <h1>
        {text === '' ? (
          ' '
        ) : (
          <button type="button" class="name" title="Edit as a selector" onClick={edit}>
            {text.split(/(?<=_)/).flatMap((piece, i) => [piece, <wbr key={i} />])}
          </button>
        )}
      </h1>
      <p class="span">
        {place.value.zoom === null ? (
          'Last 24 hours'
        ) : (
          <button
            type="button"
            class="link"
            onClick={() => {
              go({ zoom: null });
            }}
          >
            ← Back to 24 hours
          </button>
        )}
        <span class="span-part">{unitText()}</span>
        <span class="span-part">{seriesText()}</span>
      </p>
      {canRate.value && <RateSwitch />}
    </div>
  );
}

function edit(): void {
  input.value = selector.value.includes('{') ? selector.value : `${selector.value}{}`;
  open.value = true;
  const box = document.querySelector<HTMLInputElement>('.search input');
  box?.focus();
  const end = input.value.length - 1;
  queueMicrotask(() => box?.setSelectionRange(end, end));
}

function unitText(): string {
  const { kind } = unit.value;
  const what = { none: '', seconds: 'seconds', bytes: 'bytes', ratio: 'ratio', percent: 'percent' }[
    kind
  ];
  if (!rateOn.value) return what;
  const per = what === '' ? 'per second' : `${what} per second`;
  const over = windowText(window.value / 1000);
  return window.value > 0 ? `${per}, over ${over}` : per;
}

function windowText(seconds: number): string {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`;
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

function seriesText(): string {
  const drawn = lines.value.length;
  const all = matching.value;
  if (drawn === 0) return '';
  if (all !== null && all > drawn) return `${drawn} of ${count(all, 'series', 'series')}`;
  return count(drawn, 'series', 'series');
}

function RateSwitch() {
  const choice = (label: string, on: boolean, title: string) => (
    <button
      type="button"
      aria-pressed={rateOn.value === on}
      title={title}
      onClick={() => {
        go({ rate: on }, 'replace');
      }}
    >
      {label}
    </button>
  );
  return (
    <div class="switch" role="group" aria-label="How the counter is drawn">
      {choice('Rate', true, 'Increase per second, resets counted')}
      {choice('Value', false, 'The counter as it was stored')}
    </div>
  );
}
