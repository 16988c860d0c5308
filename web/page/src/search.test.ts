import { describe, expect, it } from 'vitest';
import { firstMetric, fit, narrowing, rank, readQuery, tokenMatcher } from './search';

const names = [
  'go_memstats_alloc_bytes',
  'node_cpu_guest_seconds_total',
  'node_cpu_seconds_total',
  'process_cpu_seconds_total',
  'scpu_thing',
  'up',
];

const ranked = (text: string) => {
  const q = readQuery(text);
  return q.kind === 'search' ? rank(names, q.fragments).map((h) => h.name) : [];
};

describe('readQuery', () => {
  it('tells fragments, labels and selectors apart', () => {
    expect(readQuery('CPU mode=idle job=~"a b"')).toEqual({
      kind: 'search',
      fragments: ['cpu'],
      labels: [
        { label: 'mode', op: '=', value: 'idle' },
        { label: 'job', op: '=~', value: 'a b' },
      ],
    });
    expect(readQuery(' up{job="x"} ')).toEqual({ kind: 'selector', text: 'up{job="x"}' });
    expect(readQuery('a="x \\"y')).toMatchObject({ labels: [{ value: 'x "y' }] });
    expect(readQuery('  ')).toEqual({ kind: 'search', fragments: [], labels: [] });
  });
});

describe('rank', () => {
  it('puts whole words before beginnings, and those before the inside', () => {
    expect(ranked('cpu')).toEqual([
      'node_cpu_seconds_total',
      'node_cpu_guest_seconds_total',
      'process_cpu_seconds_total',
      'scpu_thing',
    ]);
    expect(ranked('node total')[0]).toBe('node_cpu_seconds_total');
  });

  it('finds scattered letters, but only where nothing fits better', () => {
    expect(ranked('ncst')).toContain('node_cpu_seconds_total');
    expect(ranked('up')).toEqual(['up']);
    expect(ranked('zzz')).toEqual([]);
  });

  it('keeps the order without fragments', () => {
    expect(ranked('')).toEqual(names);
  });

  it('marks what matched', () => {
    expect(fit('node_cpu', 'cpu')?.at).toEqual([5, 6, 7]);
    expect(fit('node_cpu_seconds', 'ncs')?.at).toEqual([0, 5, 9]);
    expect(fit('node', 'x')).toBeNull();
  });
});

describe('labels in a search', () => {
  it('take an unfinished value as a beginning', () => {
    const token = { label: 'mode', op: '=' as const, value: 'i.d' };
    expect(tokenMatcher(token, ['idle'])).toEqual({ label: 'mode', op: '=~', value: 'i\\.d.*' });
    expect(tokenMatcher({ ...token, value: 'idle' }, ['idle'])?.op).toBe('=');
    expect(tokenMatcher(token, undefined)?.op).toBe('=');
    expect(tokenMatcher({ ...token, value: '' }, [])).toBeNull();
  });

  it('ask the server with a matcher that is never empty', () => {
    const mode = { label: 'mode', op: '!=' as const, value: 'idle' };
    expect(narrowing(['cpu'], [mode], false)).toBe('{__name__!="",mode!="idle"}');
    expect(narrowing(['c.u'], [], true)).toBe('{__name__=~"(?i).*c\\\\.u.*"}');
    expect(narrowing(['cpu'], [], false)).toBeNull();
  });
});

it('firstMetric prefers the processor', () => {
  expect(firstMetric(names)).toBe('node_cpu_seconds_total');
  expect(firstMetric(['a', 'up', 'vm_cpu_busy'])).toBe('vm_cpu_busy');
  expect(firstMetric(['a', 'up'])).toBe('up');
  expect(firstMetric(['a'])).toBe('a');
  expect(firstMetric([])).toBeUndefined();
});
