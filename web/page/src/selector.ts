/** Series selectors: text to matchers and back, and what a click on a label value does to them. */

export type Op = '=' | '!=' | '=~' | '!~';

export interface Matcher {
  label: string;
  op: Op;
  value: string;
}

export interface Selector {
  /** The metric name; '' when the selector names none. */
  name: string;
  matchers: Matcher[];
}

const plainName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const plainLabel = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** A PromQL string literal in double quotes. */
export function quote(value: string): string {
  const escaped = value.replace(/[\\"\n\r\t]/g, (c) => {
    switch (c) {
      case '\n':
        return '\\n';
      case '\r':
        return '\\r';
      case '\t':
        return '\\t';
      default:
        return '\\' + c;
    }
  });
  return `"${escaped}"`;
}

export function formatMatcher(m: Matcher): string {
  const label = plainLabel.test(m.label) ? m.label : quote(m.label);
  return `${label}${m.op}${quote(m.value)}`;
}

export function formatSelector(s: Selector): string {
  const parts = s.matchers.map(formatMatcher);
  if (s.name !== '' && !plainName.test(s.name)) return `{${[quote(s.name), ...parts].join(',')}}`;
  if (parts.length === 0) return s.name === '' ? '' : s.name;
  return `${s.name}{${parts.join(',')}}`;
}

/** The matchers of a selector, or null when the text is none that this page can take apart. */
export function parseSelector(text: string): Selector | null {
  const p = new Reader(text);
  p.space();
  let name = p.take(/[a-zA-Z_:][a-zA-Z0-9_:]*/y) ?? '';
  const matchers: Matcher[] = [];
  p.space();
  if (p.take(/\{/y) !== null) {
    for (;;) {
      p.space();
      if (p.take(/\}/y) !== null) break;
      const quoted = p.string();
      const label = quoted ?? p.take(/[a-zA-Z_][a-zA-Z0-9_]*/y);
      if (label === null) return null;
      p.space();
      const op = p.take(/=~|!=|!~|=/y) as Op | null;
      if (op === null) {
        if (quoted === null || name !== '') return null;
        name = quoted;
      } else {
        p.space();
        const value = p.string();
        if (value === null) return null;
        if (label === '__name__' && op === '=' && name === '') name = value;
        else matchers.push({ label, op, value });
      }
      p.space();
      if (p.take(/,/y) === null) {
        if (p.take(/\}/y) === null) return null;
        break;
      }
    }
  }
  p.space();
  if (!p.done() || (name === '' && matchers.length === 0)) return null;
  return { name, matchers };
}

const escapes: Record<string, string> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
  "'": "'",
};

class Reader {
  private at = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  done(): boolean {
    return this.at === this.text.length;
  }

  space(): void {
    this.take(/\s*/y);
  }

  /** What a sticky expression matches here, or null. */
  take(re: RegExp): string | null {
    re.lastIndex = this.at;
    const found = re.exec(this.text)?.[0];
    if (found === undefined) return null;
    this.at += found.length;
    return found;
  }

  /** A string literal in one of PromQL's three quotes, or null. */
  string(): string | null {
    const raw = this.take(/`[^`]*`/y);
    if (raw !== null) return raw.slice(1, -1);
    const literal = this.take(/"(?:[^"\\\n]|\\[^\n])*"/y) ?? this.take(/'(?:[^'\\\n]|\\[^\n])*'/y);
    if (literal === null) return null;
    const unknown: string[] = [];
    const value = literal
      .slice(1, -1)
      .replace(
        /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-7][0-9a-fA-F])|(.))/g,
        (whole, u?: string, long?: string, x?: string, c?: string) => {
          const hex = u ?? long ?? x;
          const point = hex === undefined ? Infinity : parseInt(hex, 16);
          const char = point <= 0x10ffff ? String.fromCodePoint(point) : escapes[c ?? ''];
          if (char === undefined) unknown.push(whole);
          return char ?? '';
        },
      );
    return unknown.length === 0 ? value : null;
  }
}

/** A regular expression that matches exactly this text. */
export function escapeRegex(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&');
}

/** The values a matcher asks for when it is a plain choice (a="x" or a=~"x|y"), else null. */
export function choices(m: Matcher): string[] | null {
  if (m.op === '=') return [m.value];
  if (m.op !== '=~') return null;
  const values: string[] = [];
  let value = '';
  for (let i = 0; i < m.value.length; i++) {
    const c = m.value.charAt(i);
    if (c === '|') {
      values.push(value);
      value = '';
    } else if (c === '\\') {
      const next = m.value.charAt(++i);
      if (!/[\\.+*?()|[\]{}^$]/.test(next)) return null;
      value += next;
    } else if (/[.+*?()[\]{}^$]/.test(c)) {
      return null;
    } else {
      value += c;
    }
  }
  values.push(value);
  return values;
}

/** The selector after a click on a label value: the value joins the label's choice, or leaves it. */
export function toggleValue(s: Selector, label: string, value: string): Selector {
  const at = s.matchers.findIndex((m) => m.label === label && choices(m) !== null);
  const old = s.matchers[at];
  const before = old === undefined ? [] : (choices(old) ?? []);
  const after = before.includes(value) ? before.filter((v) => v !== value) : [...before, value];
  const matchers = [...s.matchers];
  const changed = choose(label, after);
  if (at < 0) matchers.push(...changed);
  else matchers.splice(at, 1, ...changed);
  return { ...s, matchers };
}

function choose(label: string, values: string[]): Matcher[] {
  const [first] = values;
  if (first === undefined) return [];
  if (values.length === 1) return [{ label, op: '=', value: first }];
  return [{ label, op: '=~', value: values.map(escapeRegex).join('|') }];
}

/** Whether labels pass a matcher. An expression that only the server understands passes. */
export function matches(labels: Record<string, string>, m: Matcher): boolean {
  const value = labels[m.label] ?? '';
  if (m.op === '=') return value === m.value;
  if (m.op === '!=') return value !== m.value;
  const wanted = choices({ ...m, op: '=~' });
  let hit: boolean;
  if (wanted !== null) {
    hit = wanted.includes(value);
  } else {
    try {
      hit = new RegExp(`^(?:${m.value})$`, 'su').test(value);
    } catch {
      return true;
    }
  }
  return m.op === '=~' ? hit : !hit;
}
