/** Columns of samples: gaps, rates, and the one x axis that a chart of many series needs. */

export interface Columns {
  /** Milliseconds, ascending. */
  t: number[];
  /** null: stale, NaN or infinite. */
  v: (number | null)[];
}

/** undefined: no sample of its own, the line goes on; null: missing or stale, the line breaks. */
export type Cell = number | null | undefined;

export interface Joined {
  xs: number[];
  ys: Cell[][];
}

/** A distance this many times the usual one is a gap. */
const gapFactor = 5;

/** The usual distance of neighbouring samples (the median), or 0 when there are fewer than two. */
export function interval(t: number[]): number {
  if (t.length < 2) return 0;
  const steps = new Float64Array(t.length - 1);
  for (let i = 1; i < t.length; i++) steps[i - 1] = (t[i] ?? 0) - (t[i - 1] ?? 0);
  steps.sort();
  return steps[(steps.length - 1) >> 1] ?? 0;
}

/** Whatever is not a finite number becomes null. */
export function clean(c: Columns): Columns {
  return {
    t: c.t,
    v: c.v.map((v) => (typeof v === 'number' && Number.isFinite(v) ? v : null)),
  };
}

interface Sample {
  t: number;
  v: number;
  /** Whether the line breaks between the sample before and this one. */
  broken: boolean;
}

function samples(c: Columns): Sample[] {
  const far = interval(c.t) * gapFactor;
  const out: Sample[] = [];
  let stale = false;
  for (let i = 0; i < c.t.length; i++) {
    const t = c.t[i] ?? 0;
    const v = c.v[i] ?? null;
    if (v === null) {
      stale = true;
      continue;
    }
    const before = out.at(-1);
    const broken = before !== undefined && (stale || (far > 0 && t - before.t > far));
    out.push({ t, v, broken });
    stale = false;
  }
  return out;
}

/**
 * All series over one ascending x axis. Every series keeps its own samples; between two of them
 * stand undefined or, across a gap, null. A gap that no x falls into gets an x of its own.
 */
export function join(series: Columns[]): Joined {
  const all = series.map(samples);
  const times: number[] = [];
  for (const own of all) {
    for (let i = 0; i < own.length; i++) {
      const s = own[i];
      if (s === undefined) continue;
      times.push(s.t);
      const before = own[i - 1];
      if (s.broken && before !== undefined) times.push(before.t + (s.t - before.t) / 2);
    }
  }
  const sorted = Float64Array.from(times).sort();
  const xs: number[] = [];
  for (const x of sorted) if (x !== xs.at(-1)) xs.push(x);

  const ys = all.map((own) => {
    const column = new Array<Cell>(xs.length).fill(undefined);
    let x = 0;
    for (const s of own) {
      while ((xs[x] ?? Infinity) < s.t) {
        if (s.broken) column[x] = null;
        x++;
      }
      column[x] = s.v;
      x++;
    }
    // A series that has ended has no value any more, however far the axis goes on.
    const end = (own.at(-1)?.t ?? Infinity) + interval(own.map((s) => s.t)) * gapFactor;
    for (; x < xs.length; x++) if ((xs[x] ?? 0) > end) column[x] = null;
    return column;
  });
  return { xs, ys };
}

/** Indices of points with a gap, or nothing at all, on both sides: no line shows them. */
export function lonePoints(column: Cell[]): number[] {
  const lone: number[] = [];
  let last = -1;
  let lineBefore = false;
  let broken = true;
  for (let i = 0; i < column.length; i++) {
    const v = column[i];
    if (v === undefined) continue;
    if (v === null) {
      broken = true;
      continue;
    }
    if (broken && last >= 0 && !lineBefore) lone.push(last);
    lineBefore = !broken;
    broken = false;
    last = i;
  }
  if (last >= 0 && !lineBefore) lone.push(last);
  return lone;
}

/**
 * How far back a rate looks: four usual intervals at least, and about five pixels of the chart, which
 * is five minutes in one of a day. A round number of the clock, so that it can be named.
 */
export function rateWindow(t: number[], span: number): number {
  const least = Math.max(interval(t) * 4, span / 288, 15_000);
  const round = [15, 30, 60, 120, 300, 600, 900, 1800, 3600].find((s) => s * 1000 >= least);
  return round === undefined ? Math.ceil(least / 3_600_000) * 3_600_000 : round * 1000;
}

/**
 * The increase per second of a counter, over a sliding window. A fall is a reset: the counter began
 * again at zero. No rate reaches across a gap, and after one it waits until it rests on a few samples.
 */
export function rate(c: Columns, window: number): Columns {
  const far = interval(c.t) * gapFactor;
  const whole = (c.t.at(-1) ?? 0) - (c.t[0] ?? 0);
  const enough = Math.min(window / 2, interval(c.t) * 3, whole / 2) / 1000;
  const v: (number | null)[] = [];
  const grown: number[] = [];
  let start = 0;
  let before: number | null = null;
  for (let i = 0; i < c.t.length; i++) {
    const t = c.t[i] ?? 0;
    const value = c.v[i] ?? null;
    const gap = i > 0 && far > 0 && t - (c.t[i - 1] ?? 0) > far;
    if (value === null || before === null || gap) {
      start = i;
      grown.push(0);
      v.push(null);
    } else {
      grown.push((grown[i - 1] ?? 0) + (value < before ? value : value - before));
      while (start < i - 1 && (c.t[start] ?? 0) < t - window) start++;
      const seconds = (t - (c.t[start] ?? 0)) / 1000;
      v.push(
        seconds > 0 && seconds >= enough ? ((grown[i] ?? 0) - (grown[start] ?? 0)) / seconds : null,
      );
    }
    before = value;
  }
  return { t: c.t, v };
}

export interface Stats {
  last: number | null;
  min: number | null;
  max: number | null;
}

/** What a series did between two times. Stale at the end means there is no last value. */
export function stats(c: Columns, from: number, to: number): Stats {
  let last: number | null = null;
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < c.t.length; i++) {
    const t = c.t[i] ?? 0;
    if (t < from || t > to) continue;
    last = c.v[i] ?? null;
    if (last === null) continue;
    if (last < min) min = last;
    if (last > max) max = last;
  }
  return min > max ? { last: null, min: null, max: null } : { last, min, max };
}

/** The index of a column's own value at or before i; null when the line is broken there. */
export function valueAt(column: Cell[], i: number): number | null {
  for (let at = i; at >= 0; at--) {
    const v = column[at];
    if (v === undefined) continue;
    return v === null ? null : at;
  }
  return null;
}
