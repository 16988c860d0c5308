/** UTC on the x axis, by arithmetic on milliseconds: the zone of the operating system has no say. */

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const steps = [
  second,
  2 * second,
  5 * second,
  10 * second,
  15 * second,
  30 * second,
  minute,
  2 * minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
  hour,
  2 * hour,
  3 * hour,
  6 * hour,
  12 * hour,
  day,
  2 * day,
  7 * day,
];

/** The smallest step of the clock that puts no more than `most` ticks between two times. */
export function tickStep(from: number, to: number, most: number): number {
  const least = (to - from) / Math.max(1, most);
  return steps.find((s) => s >= least) ?? Math.ceil(least / day) * day;
}

/** Times of ticks: multiples of the step since 1970, so every UTC midnight is among them. */
export function ticks(from: number, to: number, most: number): number[] {
  const step = tickStep(from, to, most);
  const out: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  return out;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun'].concat([
  'Jul',
  'Aug',
  'Sep',
  'Oct',
  'Nov',
  'Dec',
]);

function two(n: number): string {
  return String(n).padStart(2, '0');
}

/** "14:05", or "14:05:30" where seconds count; midnight is its date, "1 Dec". */
export function tickLabel(t: number, step: number): string {
  if (t % day === 0) return dayLabel(t);
  const d = new Date(t);
  const hm = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
  return step % minute === 0 ? hm : `${hm}:${two(d.getUTCSeconds())}`;
}

export function dayLabel(t: number): string {
  const d = new Date(t);
  return `${d.getUTCDate()} ${months[d.getUTCMonth()] ?? ''}`;
}

/** "14:05:30" in UTC. */
export function clock(t: number): string {
  const d = new Date(t);
  return `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())}`;
}
