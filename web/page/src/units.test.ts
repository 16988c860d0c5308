import { describe, expect, it } from 'vitest';
import { count, formatSize, formatTicks, formatValue, guessUnit, isCounter } from './units';

const value = (name: string, v: number, asRate = false) => formatValue(v, guessUnit(name, asRate));

describe('units', () => {
  it.each([
    ['node_memory_MemFree_bytes', 3.5 * 2 ** 30, false, '3.5 GiB'],
    ['net_bytes_total', 2048, true, '2 KiB/s'],
    ['rpc_duration_seconds', 0.0042, false, '4.2 ms'],
    ['uptime_seconds', 7200, false, '2 h'],
    ['node_cpu_seconds_total', 0.25, true, '0.25 s/s'],
    ['cache_hit_ratio', 0.934, false, '93.4%'],
    ['disk_used_percent', 41.25, false, '41.25%'],
    ['requests_total', 1_234_567, false, '1.235M'],
    ['request_duration_seconds_count', 12, true, '12/s'],
    ['process_start_time_seconds', 1.79e9, false, '1.79G'],
    ['up', 0, false, '0'],
    ['tiny', 1e-14, false, '1.00e-5n'],
    ['minus_bytes', -1024, false, '-1 KiB'],
  ])('%s %d', (name, v, asRate, want) => {
    expect(value(name, v, asRate)).toBe(want);
  });

  it('a missing value is a dash', () => {
    expect(formatValue(null, guessUnit('up', false))).toBe('–');
  });

  it('knows counters by their names', () => {
    expect(['a_total', 'a_count', 'a_sum', 'a_bucket'].every(isCounter)).toBe(true);
    expect(isCounter('a_bytes')).toBe(false);
  });
});

describe('axis labels', () => {
  const ticks = (name: string, values: number[], asRate = false) =>
    formatTicks(values, guessUnit(name, asRate));

  it('are in one unit and differ from each other', () => {
    expect(ticks('a_bytes', [0, 2 ** 29, 2 ** 30])).toEqual(['0 GiB', '0.5 GiB', '1 GiB']);
    expect(ticks('a', [0.25, 0.5, 0.75])).toEqual(['0.25', '0.5', '0.75']);
    expect(ticks('a', [5, 7.5, 10])).toEqual(['5', '7.5', '10']);
    expect(ticks('a', [0, 2500, 5000])).toEqual(['0', '2,500', '5,000']);
    expect(ticks('a_seconds', [0, 0.01, 0.02])).toEqual(['0 ms', '10 ms', '20 ms']);
  });
});

it('what an answer cost', () => {
  expect(formatSize(8123)).toBe('8.1 KB');
  expect(formatSize(12)).toBe('12 B');
  expect(count(1, 'point read')).toBe('1 point read');
  expect(count(5760, 'sample')).toBe('5,760 samples');
});
