/** What is typed into the search box: fragments of names, label=value tokens, or a whole selector. */

import { escapeRegex, formatSelector, parseSelector, type Matcher, type Op } from './selector';

export interface LabelToken {
  label: string;
  op: Op;
  value: string;
}

export type Query =
  | { kind: 'search'; fragments: string[]; labels: LabelToken[] }
  | { kind: 'selector'; text: string };

/** A text with a brace is a selector; anything else is a search. */
export function readQuery(text: string): Query {
  if (text.includes('{')) return { kind: 'selector', text: text.trim() };
  const fragments: string[] = [];
  const labels: LabelToken[] = [];
  for (const token of text.match(/(?:"(?:[^"\\]|\\.)*"?|[^\s"])+/g) ?? []) {
    const m = /^([a-zA-Z_][\w.]*)(=~|!=|!~|=)(.*)$/s.exec(token);
    if (m?.[1] === undefined) fragments.push(token.toLowerCase());
    else labels.push({ label: m[1], op: m[2] as Op, value: unquote(m[3] ?? '') });
  }
  return { kind: 'search', fragments, labels };
}

function unquote(text: string): string {
  if (!text.startsWith('"')) return text;
  const closed = /^"(?:[^"\\]|\\.)*"$/s.test(text) ? text : text + '"';
  return parseSelector(`{a=${closed}}`)?.matchers[0]?.value ?? text.slice(1);
}

/** A token as a matcher: a value that nothing has is taken as the beginning of one. */
export function tokenMatcher(token: LabelToken, known: string[] | undefined): Matcher | null {
  if (token.value === '') return null;
  if (token.op === '=' && known !== undefined && !known.includes(token.value)) {
    return { label: token.label, op: '=~', value: escapeRegex(token.value) + '.*' };
  }
  return { ...token };
}

/** The selector that asks the server for the names behind a search, or null when none is needed. */
export function narrowing(fragments: string[], matchers: Matcher[], cut: boolean): string | null {
  const wanted = [...matchers];
  if (cut) {
    for (const f of fragments) {
      wanted.unshift({ label: '__name__', op: '=~', value: `(?i).*${escapeRegex(f)}.*` });
    }
  }
  if (wanted.length === 0) return null;
  if (!wanted.some((m) => m.label === '__name__')) {
    wanted.unshift({ label: '__name__', op: '!=', value: '' });
  }
  return formatSelector({ name: '', matchers: wanted });
}

export interface Hit {
  name: string;
  score: number;
  /** Indices of the characters that matched, ascending. */
  at: number[];
}

/** How well a fragment fits a name: whole, beginning, beginning of a word, inside, or scattered. */
export function fit(name: string, fragment: string): { score: number; at: number[] } | null {
  const lower = name.toLowerCase();
  const run = (from: number) => Array.from({ length: fragment.length }, (_, i) => from + i);
  if (lower === fragment) return { score: 1000, at: run(0) };
  if (lower.startsWith(fragment)) return { score: 800, at: run(0) };
  for (let from = lower.indexOf(fragment); from >= 0; from = lower.indexOf(fragment, from + 1)) {
    if (/[^a-z0-9]/.test(lower.charAt(from - 1))) {
      const whole = !/[a-z0-9]/.test(lower.charAt(from + fragment.length));
      return { score: (whole ? 700 : 600) - from, at: run(from) };
    }
  }
  const inside = lower.indexOf(fragment);
  if (inside >= 0) return { score: 400 - inside, at: run(inside) };
  return scattered(lower, fragment);
}

function scattered(lower: string, fragment: string): { score: number; at: number[] } | null {
  const at: number[] = [];
  let score = 200;
  let from = 0;
  for (const c of fragment) {
    // Beginnings of words first: "ncpu" is n(ode_)cpu.
    const next = lower.indexOf(c, from);
    if (next < 0) return null;
    const follows = next === from && from > 0;
    const word = nextWord(lower, c, from);
    const take = !follows && word >= 0 && rest(lower, fragment, at.length + 1, word) ? word : next;
    score -= take - from > 0 ? 6 + Math.min(20, take - from) : 0;
    at.push(take);
    from = take + 1;
  }
  return score > 0 ? { score, at } : null;
}

function nextWord(lower: string, c: string, from: number): number {
  for (let i = lower.indexOf(c, from); i >= 0; i = lower.indexOf(c, i + 1)) {
    if (i === 0 || /[^a-z0-9]/.test(lower.charAt(i - 1))) return i;
  }
  return -1;
}

/** Whether what is left of the fragment still follows after a position. */
function rest(lower: string, fragment: string, done: number, after: number): boolean {
  let from = after + 1;
  for (let i = done; i < fragment.length; i++) {
    from = lower.indexOf(fragment.charAt(i), from) + 1;
    if (from === 0) return false;
  }
  return true;
}

/** Names that fit all fragments, best first; without fragments, all in their order. */
export function rank(names: string[], fragments: string[]): Hit[] {
  const hits: Hit[] = [];
  for (const name of names) {
    let score = 0;
    const at = new Set<number>();
    const fits = fragments.every((f) => {
      const found = fit(name, f);
      if (found === null) return false;
      score += found.score;
      for (const i of found.at) at.add(i);
      return true;
    });
    if (fits) hits.push({ name, score, at: [...at].sort((a, b) => a - b) });
  }
  if (fragments.length > 0) {
    hits.sort((a, b) => b.score - a.score || a.name.length - b.name.length || cmp(a.name, b.name));
    const best = hits[0]?.score ?? 0;
    // Scattered letters are noise as soon as something fits properly.
    if (best >= 380 * fragments.length) return hits.filter((h) => h.score > 200 * fragments.length);
  }
  return hits;
}

function cmp(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The metric to open with: something about the processor, else `up`, else the first. */
export function firstMetric(names: string[]): string | undefined {
  const liked = ['node_cpu_seconds_total', 'cpu_usage_user', 'process_cpu_seconds_total'];
  return (
    liked.find((n) => names.includes(n)) ??
    names.find((n) => /(^|_)cpu(_|$)/.test(n)) ??
    (names.includes('up') ? 'up' : names[0])
  );
}
