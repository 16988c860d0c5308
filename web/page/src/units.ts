/** What a metric counts, guessed from its name by Prometheus' own conventions, and how to write it. */

export type Kind = 'none' | 'seconds' | 'bytes' | 'ratio' | 'percent';

export interface Unit {
  kind: Kind;
  perSecond: boolean;
}

export const plain: Unit = { kind: 'none', perSecond: false };

/** Counters by name: the rate of them says more than the value. */
export function isCounter(name: string): boolean {
  return /_(total|count|sum|bucket)$/.test(name);
}

export function isTotal(name: string): boolean {
  return name.endsWith('_total');
}

export function guessUnit(name: string, asRate: boolean): Unit {
  const base = name.replace(/_(total|sum)$/, '');
  let kind: Kind = 'none';
  if (/_(count|bucket)$/.test(name)) kind = 'none';
  else if (/(^|_)seconds$/.test(base)) kind = 'seconds';
  else if (/(^|_)bytes$/.test(base)) kind = 'bytes';
  else if (/(^|_)ratio$/.test(base)) kind = 'ratio';
  else if (/(^|_)percent(age)?$/.test(base)) kind = 'percent';
  // Seconds since 1970 are a date: no duration is that long.
  if (/(timestamp|start_time|boot_time|node_time)_seconds$/.test(base)) kind = 'none';
  return { kind, perSecond: asRate };
}

interface Scale {
  factor: number;
  suffix: string;
}

const metric: Scale[] = [
  { factor: 1e12, suffix: 'T' },
  { factor: 1e9, suffix: 'G' },
  { factor: 1e6, suffix: 'M' },
  { factor: 1e3, suffix: 'k' },
  { factor: 1, suffix: '' },
  { factor: 1e-3, suffix: 'm' },
  { factor: 1e-6, suffix: 'µ' },
  { factor: 1e-9, suffix: 'n' },
];

const binary: Scale[] = [
  { factor: 2 ** 50, suffix: ' PiB' },
  { factor: 2 ** 40, suffix: ' TiB' },
  { factor: 2 ** 30, suffix: ' GiB' },
  { factor: 2 ** 20, suffix: ' MiB' },
  { factor: 2 ** 10, suffix: ' KiB' },
  { factor: 1, suffix: ' B' },
];

const duration: Scale[] = [
  { factor: 86_400, suffix: ' d' },
  { factor: 3600, suffix: ' h' },
  { factor: 60, suffix: ' min' },
  { factor: 1, suffix: ' s' },
  { factor: 1e-3, suffix: ' ms' },
  { factor: 1e-6, suffix: ' µs' },
  { factor: 1e-9, suffix: ' ns' },
];

/** The scale that suits numbers of this size. */
function scaleFor(unit: Unit, size: number): Scale {
  const one = (suffix: string): Scale => ({ factor: 1, suffix });
  let scales: Scale[];
  switch (unit.kind) {
    case 'ratio':
      return { factor: 0.01, suffix: '%' };
    case 'percent':
      return one('%');
    case 'bytes':
      scales = binary;
      break;
    case 'seconds':
      // A rate of seconds is a share of time, and reads best as one: 0.25 s/s.
      scales = unit.perSecond ? [{ factor: 1, suffix: ' s' }] : duration;
      break;
    default:
      // Small plain numbers read better as decimals down to a thousandth.
      if (size === 0 || (size >= 1e-3 && size < 10_000)) return one('');
      scales = metric;
  }
  if (size === 0) return scales.find((s) => s.factor === 1) ?? one('');
  return scales.find((s) => size >= s.factor) ?? scales.at(-1) ?? one('');
}

function write(value: number, scale: Scale, digits: number, unit: Unit): string {
  const scaled = value / scale.factor;
  const number = scaled.toLocaleString('en-US', {
    minimumFractionDigits: 0,
    maximumFractionDigits: digits,
  });
  return (number === '-0' ? '0' : number) + scale.suffix + (unit.perSecond ? '/s' : '');
}

/** One value with about four significant digits. */
export function formatValue(value: number | null, unit: Unit): string {
  if (value === null) return '–';
  const scale = scaleFor(unit, Math.abs(value));
  const scaled = Math.abs(value) / scale.factor;
  if (scaled !== 0 && (scaled < 1e-4 || scaled >= 1e15)) {
    return (value / scale.factor).toExponential(2) + scale.suffix + (unit.perSecond ? '/s' : '');
  }
  const digits = scaled >= 100 ? 1 : scaled >= 10 ? 2 : scaled >= 1 ? 3 : scaled >= 0.1 ? 4 : 5;
  return write(value, scale, digits, unit);
}

/** Labels of an axis: all in one unit, with as many digits as the step needs. */
export function formatTicks(values: number[], unit: Unit): string[] {
  const size = Math.max(...values.map(Math.abs), 0);
  const scale = scaleFor(unit, size);
  const step = Math.abs((values[1] ?? 0) - (values[0] ?? 0)) / scale.factor;
  const digits = step > 0 ? Math.min(12, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))) : 3;
  const exact = step > 0 && needsMore(step, digits) ? digits + 1 : digits;
  return values.map((v) => write(v, scale, exact, unit));
}

function needsMore(step: number, digits: number): boolean {
  const shown = step * 10 ** digits;
  return Math.abs(shown - Math.round(shown)) > 1e-6;
}

/** Steps an axis may take: round numbers in the unit that the reader sees. */
export function increments(unit: Unit): number[] {
  const out: number[] = [];
  if (unit.kind === 'bytes') {
    for (const f of [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5]) out.push(f);
    for (let p = 0; p <= 60; p++) out.push(2 ** p);
    return out;
  }
  const minutes = unit.kind === 'seconds' && !unit.perSecond;
  for (let e = -12; e <= (minutes ? 1 : 18); e++) {
    for (const m of [1, 2, 2.5, 5]) {
      if (m === 2.5 && e < -11) continue;
      const step = Number(`${m}e${e}`);
      if (!minutes || step < 30) out.push(step);
    }
  }
  if (minutes) {
    out.push(30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200);
    for (let d = 86_400; d < 1e13; d *= 2) out.push(d);
  }
  return out;
}

/** "8.1 KB", for what an answer cost. */
export function formatSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} KB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

export function count(n: number, one: string, many = one + 's'): string {
  return `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`;
}
