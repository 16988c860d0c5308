import { afterEach, describe, expect, it } from 'vitest';
import { clock, tickLabel, ticks, tickStep } from './time';

const zones = ['UTC', 'Europe/Paris', 'America/St_Johns', 'Asia/Kathmandu', 'Pacific/Auckland'];
const before = process.env.TZ;

afterEach(() => {
  process.env.TZ = before;
});

describe.each(zones)('in %s', (zone) => {
  // Both changes of Paris' clocks, and an ordinary day.
  it.each(['2026-03-28', '2026-10-24', '2026-12-01'])('two days from %s are UTC days', (first) => {
    process.env.TZ = zone;
    expect(new Date(2026, 6, 1).getTimezoneOffset() === 0).toBe(zone === 'UTC');
    const from = Date.parse(`${first}T00:00:00Z`);
    const to = from + 48 * 3_600_000;
    const at = ticks(from, to, 50);
    expect(tickStep(from, to, 50)).toBe(3_600_000);
    expect(at).toHaveLength(49);
    const labels = at.map((t) => tickLabel(t, 3_600_000));
    expect(labels.filter((l) => /[A-Z]/.test(l))).toHaveLength(3);
    expect(labels.slice(1, 24)).toEqual(
      Array.from({ length: 23 }, (_, i) => `${String(i + 1).padStart(2, '0')}:00`),
    );
    expect(labels.slice(25, 48)).toEqual(labels.slice(1, 24));
    expect(at[24]).toBe(from + 86_400_000);
    expect(clock(from + 3_723_000)).toBe('01:02:03');
  });
});

describe('ticks', () => {
  it('are never more than asked for, and few enough to read', () => {
    for (const span of [20_000, 600_000, 3_600_000, 86_400_000, 40 * 86_400_000]) {
      for (const most of [2, 4, 12]) {
        const got = ticks(1_790_000_123_456, 1_790_000_123_456 + span, most);
        expect(got.length).toBeLessThanOrEqual(most + 1);
        expect(got.length).toBeGreaterThan(0);
      }
    }
  });

  it('say the date at midnight and the seconds where they count', () => {
    const midnight = Date.parse('2026-12-01T00:00:00Z');
    expect(tickLabel(midnight, 3_600_000)).toBe('1 Dec');
    expect(tickLabel(midnight + 15_000, 15_000)).toBe('00:00:15');
    expect(tickLabel(midnight + 60_000, 60_000)).toBe('00:01');
  });
});
