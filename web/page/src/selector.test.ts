import { describe, expect, it } from 'vitest';
import {
  choices,
  escapeRegex,
  formatSelector,
  matches,
  parseSelector,
  quote,
  toggleValue,
} from './selector';

const nasty = [
  '',
  'plain',
  'a "b"',
  'C:\\dir\\',
  'two\nlines',
  '\r\ttab',
  '\\n',
  "it's",
  '`',
  '日本',
  'a|b',
];

describe('quote', () => {
  it('writes literals that PromQL reads', () => {
    expect(quote('a "b"')).toBe('"a \\"b\\""');
    expect(quote('C:\\dir\\')).toBe('"C:\\\\dir\\\\"');
    expect(quote('two\nlines')).toBe('"two\\nlines"');
    expect(quote('\\n')).toBe('"\\\\n"');
  });

  it.each(nasty)('comes back from a selector: %j', (value) => {
    const s = { name: 'up', matchers: [{ label: 'l', op: '=' as const, value }] };
    expect(parseSelector(formatSelector(s))).toEqual(s);
  });
});

describe('formatSelector', () => {
  it('leaves braces out where they say nothing', () => {
    expect(formatSelector({ name: 'up', matchers: [] })).toBe('up');
    expect(formatSelector({ name: '', matchers: [] })).toBe('');
  });

  it('quotes names that are not plain', () => {
    const matchers = [{ label: 'a.b', op: '!=' as const, value: 'x' }];
    const text = formatSelector({ name: 'my.metric "1"', matchers });
    expect(text).toBe('{"my.metric \\"1\\"","a.b"!="x"}');
    expect(parseSelector(text)).toEqual({ name: 'my.metric "1"', matchers });
  });
});

describe('parseSelector', () => {
  it('reads every operator, any quotes, spaces and a last comma', () => {
    expect(parseSelector(` a:b { x = "1", y!='2' , z=~\`d.*\\d\`, w!~"q", } `)).toEqual({
      name: 'a:b',
      matchers: [
        { label: 'x', op: '=', value: '1' },
        { label: 'y', op: '!=', value: '2' },
        { label: 'z', op: '=~', value: 'd.*\\d' },
        { label: 'w', op: '!~', value: 'q' },
      ],
    });
    expect(parseSelector('{__name__="up"}')).toEqual({ name: 'up', matchers: [] });
    expect(parseSelector('{a="\\u00e9\\x41"}')?.matchers[0]?.value).toBe('éA');
  });

  it.each(['', '{}', 'up{', 'up{job=}', 'up{job="x}', 'sum(up)', 'up[5m]', 'a b', '{a="\\q"}'])(
    'refuses %j',
    (text) => {
      expect(parseSelector(text)).toBeNull();
    },
  );
});

describe('toggleValue', () => {
  const up = { name: 'up', matchers: [] };

  it('goes from none over one to several and back', () => {
    const one = toggleValue(up, 'job', 'a.b');
    expect(formatSelector(one)).toBe('up{job="a.b"}');
    const two = toggleValue(one, 'job', 'c|d');
    expect(formatSelector(two)).toBe('up{job=~"a\\\\.b|c\\\\|d"}');
    const back = toggleValue(two, 'job', 'a.b');
    expect(formatSelector(back)).toBe('up{job="c|d"}');
    expect(toggleValue(back, 'job', 'c|d')).toEqual(up);
  });

  it.each(nasty)('a choice of %j and another is read back', (value) => {
    const two = toggleValue(toggleValue(up, 'l', value), 'l', 'other');
    const read = parseSelector(formatSelector(two));
    expect(read?.matchers.map(choices)).toEqual([[value, 'other']]);
  });

  it('leaves expressions of the user alone', () => {
    const s = parseSelector('up{job=~"no.*"}');
    if (s === null) throw new Error('not read');
    expect(formatSelector(toggleValue(s, 'job', 'x'))).toBe('up{job=~"no.*",job="x"}');
  });
});

describe('matches', () => {
  const labels = { job: 'node', path: 'a.b' };
  it.each([
    ['{job="node"}', true],
    ['{job!="node"}', false],
    ['{job=~"no"}', false],
    ['{job=~"no.*|x"}', true],
    ['{job!~"x|node"}', false],
    ['{gone=""}', true],
    ['{path=~"a\\\\.b"}', true],
    ['{job=~"(?s:unreadable here"}', true],
  ])('%s', (text, want) => {
    expect(parseSelector(text)?.matchers.every((m) => matches(labels, m))).toBe(want);
  });
});

it('escapeRegex leaves nothing to be understood', () => {
  const all = '\\.+*?()|[]{}^$';
  expect(new RegExp(`^${escapeRegex(all)}$`).test(all)).toBe(true);
});
