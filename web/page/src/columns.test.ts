import { describe, expect, it } from 'vitest';
import { clean, interval, join, lonePoints, rate, rateWindow, stats, valueAt } from './columns';

const series = (step: number, v: (number | null)[]) => ({ t: v.map((_, i) => i * step), v });

describe('join', () => {
  it('different timestamps are no gaps', () => {
    const a = { t: [0, 15, 30, 45], v: [1, 2, 3, 4] };
    const b = { t: [0, 10, 20, 40, 50], v: [5, 6, 7, 8, 9] };
    const { xs, ys } = join([a, b]);
    expect(xs).toEqual([0, 10, 15, 20, 30, 40, 45, 50]);
    expect(ys[0]).toEqual([1, undefined, 2, undefined, 3, undefined, 4, undefined]);
    expect(ys[1]).toEqual([5, 6, undefined, 7, undefined, 8, undefined, 9]);
  });

  it('a stale sample breaks the line between its neighbours, at every x there', () => {
    const a = { t: [0, 10, 20, 30], v: [1, null, 3, 4] };
    const b = { t: [0, 5, 10, 15, 20], v: [1, 1, 1, 1, 1] };
    const { xs, ys } = join([a, b]);
    expect(xs).toEqual([0, 5, 10, 15, 20, 30]);
    expect(ys[0]).toEqual([1, null, null, null, 3, 4]);
  });

  it('a distance far beyond the usual one is a gap, and gets an x to show it', () => {
    const a = { t: [0, 10, 20, 30, 100, 110], v: [1, 2, 3, 4, 5, 6] };
    const { xs, ys } = join([a]);
    expect(xs).toEqual([0, 10, 20, 30, 65, 100, 110]);
    expect(ys[0]).toEqual([1, 2, 3, 4, null, 5, 6]);
  });

  it('a few missing scrapes are none', () => {
    expect(join([{ t: [0, 10, 20, 60, 70], v: [1, 2, 3, 4, 5] }]).ys[0]).toEqual([1, 2, 3, 4, 5]);
  });

  it('NaN and infinity are missing', () => {
    expect(clean({ t: [0, 1, 2], v: [NaN, Infinity, 3] }).v).toEqual([null, null, 3]);
  });

  it('a series that has ended has no value later', () => {
    const a = { t: [0, 10, 20], v: [1, 2, 3] };
    const b = series(
      10,
      Array.from({ length: 12 }, () => 1),
    );
    const column = join([a, b]).ys[0] ?? [];
    expect(valueAt(column, 3)).toBe(2);
    expect(valueAt(column, 11)).toBeNull();
  });

  it('nothing at all', () => {
    expect(join([])).toEqual({ xs: [], ys: [] });
    expect(join([{ t: [], v: [] }])).toEqual({ xs: [], ys: [[]] });
  });

  it('joins twenty days of samples of a scrape each quickly', () => {
    const many = Array.from({ length: 20 }, (_, s) => ({
      t: Array.from({ length: 5760 }, (_, i) => i * 15_000 + s * 700),
      v: Array.from({ length: 5760 }, (_, i) => i),
    }));
    const { xs, ys } = join(many);
    expect(xs).toHaveLength(20 * 5760);
    expect(ys.every((y) => !y.includes(null) || y.indexOf(null) > 19 * 5760)).toBe(true);
  });
});

describe('lonePoints', () => {
  it('finds what no line shows', () => {
    expect(lonePoints([1, 2, null, 5, null, 3, undefined, 4])).toEqual([3]);
    expect(lonePoints([7])).toEqual([0]);
    expect(lonePoints([undefined, 1, undefined, null, 2, 3, null, undefined, 4])).toEqual([1, 8]);
    expect(lonePoints([])).toEqual([]);
  });
});

describe('rate', () => {
  it('is the increase per second', () => {
    const c = rate(series(10_000, [0, 10, 20, 40, 60]), 20_000);
    expect(c.v).toEqual([null, 1, 1, 1.5, 2]);
  });

  it('counts a reset as growth from zero', () => {
    const c = rate(series(10_000, [100, 110, 5, 15]), 10_000);
    expect(c.v).toEqual([null, 1, 0.5, 1]);
  });

  it('does not reach across gaps', () => {
    const stale = rate(series(10_000, [0, 10, null, 1000, 1010]), 10_000);
    expect(stale.v).toEqual([null, 1, null, null, 1]);
    const far = rate(
      { t: [0, 10, 20, 30, 900, 910].map((s) => s * 1000), v: [0, 1, 2, 3, 9e6, 9e6 + 1] },
      10_000,
    );
    expect(far.v).toEqual([null, 0.1, 0.1, 0.1, null, 0.1]);
  });

  it('has something to show from the second sample on', () => {
    expect(rate(series(15_000, [0, 30]), 300_000).v).toEqual([null, 2]);
  });

  it('is never below zero', () => {
    const wild = Array.from({ length: 500 }, (_, i) => (i * 7919) % 97);
    expect(rate(series(15_000, wild), 60_000).v.every((v) => v === null || v >= 0)).toBe(true);
  });

  it('looks back five minutes in a chart of a day, less in a shorter one', () => {
    const t = [0, 15_000, 30_000];
    expect(rateWindow(t, 86_400_000)).toBe(300_000);
    expect(rateWindow(t, 3_600_000)).toBe(60_000);
    expect(rateWindow([0, 300_000, 600_000], 3_600_000)).toBe(1_800_000);
  });
});

it('interval is the usual distance', () => {
  expect(interval([0, 15, 30, 300, 315])).toBe(15);
  expect(interval([5])).toBe(0);
});

it('stats keep to the times asked for', () => {
  const c = { t: [0, 1, 2, 3], v: [9, 1, 5, null] };
  expect(stats(c, 1, 2)).toEqual({ last: 5, min: 1, max: 5 });
  expect(stats(c, 1, 3)).toEqual({ last: null, min: 1, max: 5 });
  expect(stats(c, 4, 9)).toEqual({ last: null, min: null, max: null });
});
