import { effect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { valueAt } from '../columns';
import { theme } from '../palette';
import { makePlot } from '../plot';
import {
  answer,
  behind,
  cursor,
  go,
  hidden,
  joined,
  lines,
  lineStats,
  metric,
  pointed,
  range,
  selector,
  split,
  unit,
  type Line,
} from '../state';
import { clock, dayLabel } from '../time';
import { count, formatValue } from '../units';
import { Swatch } from './legend';

/** The chart: uPlot in a box, the values under the cursor, and the same in words. */
export function Chart() {
  const box = useRef<HTMLDivElement>(null);
  const ready = answer.value !== null;
  const empty = ready && lines.value.length === 0;

  useEffect(() => {
    const at = box.current;
    if (at === null) return;
    return drive(at);
  }, []);

  return (
    <figure class={behind.value ? 'chart behind' : 'chart'}>
      {!ready && selector.value !== '' && <p class="chart-note chart-loading">Reading…</p>}
      {empty && (
        <p class="chart-note">
          No samples of {metric.value === '' ? 'this selector' : metric.value} in the last 24 hours.
        </p>
      )}
      <div
        ref={box}
        class="plot"
        role="img"
        tabIndex={0}
        aria-label={summary()}
        onKeyDown={onKeyDown}
        onBlur={() => (cursor.value = null)}
      />
      <Tip />
    </figure>
  );
}

let plot: uPlot | null = null;

/** Keeps a plot in step with the state: made anew when the lines change, fed when the data does. */
function drive(box: HTMLElement): () => void {
  let made = '';
  const draw = effect(() => {
    const shape = JSON.stringify([lines.value.map((l) => l.id), theme.value, unit.value]);
    const { xs, ys } = joined.value;
    const data = [xs, ...ys] as unknown as uPlot.AlignedData;
    const [min, max] = range.value;
    const off = hidden.value;
    if (plot === null || shape !== made) {
      plot?.destroy();
      cursor.value = null;
      plot =
        lines.value.length === 0 ? null : makePlot(box, data, lines.value, theme.value, unit.value);
      made = shape;
    } else {
      plot.setData(data, false);
    }
    const u = plot;
    u?.batch(() => {
      lines.value.forEach((l, i) => {
        const show = !off.has(l.id);
        if (u.series[i + 1]?.show !== show) u.setSeries(i + 1, { show });
      });
      u.setScale('x', { min, max });
    });
  });
  const focus = effect(() => {
    const i = lines.value.findIndex((l) => l.id === pointed.value);
    plot?.setSeries(i < 0 ? null : i + 1, { focus: true });
  });
  const resize = new ResizeObserver(() => {
    plot?.setSize({ width: box.clientWidth, height: box.clientHeight });
  });
  resize.observe(box);
  return () => {
    draw();
    focus();
    resize.disconnect();
    plot?.destroy();
    plot = null;
  };
}

/** Arrow keys walk along the samples, Escape leaves the zoom. */
function onKeyDown(e: KeyboardEvent): void {
  if (plot === null) return;
  if (e.key === 'Escape') {
    go({ zoom: null });
    cursor.value = null;
    return;
  }
  if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight') return;
  e.preventDefault();
  const width = plot.over.clientWidth;
  const step = (e.shiftKey ? 20 : 2) * (e.key === 'ArrowLeft' ? -1 : 1);
  const from = cursor.value?.left ?? (step < 0 ? width + 1 : -1);
  const left = Math.min(width, Math.max(0, from + step));
  plot.setCursor({ left, top: plot.over.clientHeight / 3 });
}

/** The most values beside the cursor; the legend has all. */
const tipMost = 8;

function Tip() {
  const c = cursor.value;
  if (c === null || plot === null) return null;
  const x = joined.value.xs[c.index];
  if (x === undefined) return null;
  const values = lines.value
    .filter((l) => !hidden.value.has(l.id))
    .map((line) => {
      const column = joined.value.ys[line.index] ?? [];
      const at = valueAt(column, c.index);
      return { line, value: at === null ? null : (column[at] ?? null) };
    })
    .filter((v): v is { line: Line; value: number } => v.value !== null);
  const wanted = plot.posToVal(c.top, 'y');
  const distance = (v: { value: number }) => Math.abs(v.value - wanted);
  const near = [...values].sort((a, b) => distance(a) - distance(b)).slice(0, tipMost);
  const nearest = near[0]?.line.id;
  near.sort((a, b) => b.value - a.value);

  const { offsetLeft, offsetTop, clientWidth } = plot.over;
  const right = c.left > clientWidth / 2;
  const left = offsetLeft + c.left;
  return (
    <div
      class={right ? 'tip tip-left' : 'tip'}
      aria-live="polite"
      style={{ left: `${left}px`, top: `${offsetTop + 8}px` }}
    >
      <p class="tip-time">
        {clock(x)} <span>UTC, {dayLabel(x)}</span>
      </p>
      {near.map(({ line, value }) => (
        <p key={line.id} class={line.id === nearest && near.length > 1 ? 'tip-near' : ''}>
          <Swatch index={line.index} />
          <span class="tip-name">{lineName(line)}</span>
          <span class="tip-value">{formatValue(value, unit.value)}</span>
        </p>
      ))}
      {values.length > near.length && (
        <p class="tip-more">and {values.length - near.length} more below</p>
      )}
    </div>
  );
}

/** What tells a line from the others. */
function lineName(line: Line): string {
  const { differing } = split.value;
  if (differing.length === 0) return line.labels.__name__ ?? '';
  return differing.map((d) => line.labels[d] ?? '–').join(' · ');
}

function summary(): string {
  const n = lines.value.length;
  if (n === 0) return 'Chart without series';
  const all = [...lineStats.value.values()];
  const min = Math.min(...all.flatMap((s) => s.min ?? []));
  const max = Math.max(...all.flatMap((s) => s.max ?? []));
  const [from, to] = range.value;
  const name = metric.value === '' ? selector.value : metric.value;
  const ends =
    min > max
      ? 'no values'
      : `from ${formatValue(min, unit.value)} to ${formatValue(max, unit.value)}`;
  return (
    `Line chart of ${name}, ${count(n, 'series', 'series')}, ` +
    `${dayLabel(from)} ${clock(from)} to ${dayLabel(to)} ${clock(to)} UTC, ${ends}. ` +
    'Arrow keys read the values; the table below has the series.'
  );
}
