/** What the search box offers for the text in it. */

import { computed, effect, signal } from '@preact/signals';
import * as api from './api';
import { namesLimit } from './load';
import { narrowing, rank, readQuery, tokenMatcher, type Hit, type LabelToken } from './search';
import { formatSelector, toggleValue, type Matcher } from './selector';
import { filters, go, labelNames, names, parsed } from './state';

export type Suggestion =
  | { kind: 'metric'; key: string; hit: Hit }
  | { kind: 'label'; key: string; label: string }
  | { kind: 'value'; key: string; label: string; value: string }
  | { kind: 'filter'; key: string; label: string; value: string }
  | { kind: 'selector'; key: string; text: string };

export const input = signal('');
/** Index of the suggestion that Enter takes. */
export const active = signal(0);
/** Whether the list is unfolded where it does not always stand beside the chart. */
export const open = signal(false);

/** Names that the server found for the labels typed; null when it was not asked. */
const narrowed = signal<{ match: string; names: string[] } | null>(null);
export const searchError = signal<string | null>(null);
const values = signal<ReadonlyMap<string, string[]>>(new Map());

const query = computed(() => readQuery(input.value));

const tokens = computed<LabelToken[]>(() =>
  query.value.kind === 'search' ? query.value.labels : [],
);

const matchers = computed<Matcher[]>(() =>
  tokens.value.flatMap((t) => tokenMatcher(t, values.value.get(t.label)) ?? []),
);

const match = computed(() => {
  const q = query.value;
  if (q.kind === 'selector') return null;
  return narrowing(q.fragments, matchers.value, (names.value?.warnings.length ?? 0) > 0);
});

/** The most rows of a list: more than that nobody reads. */
const most = 200;

export const found = computed<{ hits: Hit[]; total: number }>(() => {
  const q = query.value;
  // While a selector is typed, the list follows its name.
  const fragments = q.kind === 'search' ? q.fragments : [q.text.replace(/\{.*/s, '').toLowerCase()];
  const among =
    match.value === null || narrowed.value === null
      ? (names.value?.data ?? [])
      : narrowed.value.names;
  const hits = rank(
    among,
    fragments.filter((f) => f !== ''),
  );
  return { hits: hits.slice(0, most), total: hits.length };
});

export const suggestions = computed<Suggestion[]>(() => {
  const out: Suggestion[] = [];
  const q = query.value;
  if (q.kind === 'selector') {
    out.push({ kind: 'selector', key: 'selector', text: q.text });
  } else {
    const token = q.labels.at(-1);
    if (token !== undefined && /[=~]\S*$/.test(input.value)) {
      const typed = token.value.toLowerCase();
      const fitting = (values.value.get(token.label) ?? []).filter(
        (v) => v.toLowerCase().includes(typed) && v !== token.value,
      );
      for (const value of fitting.slice(0, 6)) {
        out.push({ kind: 'value', key: `=${value}`, label: token.label, value });
      }
    }
  }
  for (const hit of found.value.hits) out.push({ kind: 'metric', key: hit.name, hit });
  if (q.kind === 'search') {
    const fragment = q.fragments.at(-1) ?? '';
    if (fragment.length >= 2) {
      for (const { label, values } of filters.value) {
        for (const { value } of values
          .filter((v) => v.value.toLowerCase().includes(fragment))
          .slice(0, 4)) {
          out.push({ kind: 'filter', key: `+${label}=${value}`, label, value });
        }
      }
      for (const label of labelNames.value
        .filter((l) => l.toLowerCase().includes(fragment))
        .slice(0, 5)) {
        out.push({ kind: 'label', key: `${label}=`, label });
      }
    }
  }
  return out;
});

/** Does what a suggestion stands for. Answers whether the search is over. */
export function take(s: Suggestion): boolean {
  switch (s.kind) {
    case 'metric':
      go({ selector: formatSelector({ name: s.hit.name, matchers: matchers.value }), zoom: null });
      return true;
    case 'selector':
      go({ selector: s.text, zoom: null });
      return true;
    case 'filter':
      if (parsed.value !== null) {
        go({ selector: formatSelector(toggleValue(parsed.value, s.label, s.value)) });
      }
      input.value = '';
      return true;
    case 'label':
      input.value = replaceLast(`${s.label}=`);
      return false;
    case 'value':
      input.value = replaceLast(`${s.label}=${/[\s"]/.test(s.value) ? quoted(s.value) : s.value} `);
      return false;
  }
}

function quoted(value: string): string {
  return formatSelector({ name: '', matchers: [{ label: 'a', op: '=', value }] }).slice(3, -1);
}

function replaceLast(token: string): string {
  return input.value.replace(/(?:"(?:[^"\\]|\\.)*"?|[^\s"])+\s*$/, '') + token;
}

/** Keeps the suggestions in step with what is typed. */
export function startSuggesting(): void {
  input.subscribe(() => (active.value = 0));
  effect(() => {
    for (const { label } of tokens.value) if (!values.peek().has(label)) void loadValues(label);
  });
  effect(() => {
    const wanted = match.value;
    searchError.value = null;
    if (wanted === null) {
      narrowed.value = null;
      return;
    }
    const mine = new AbortController();
    const timer = setTimeout(() => void narrow(wanted, mine.signal), 120);
    return () => {
      clearTimeout(timer);
      mine.abort();
    };
  });
}

async function narrow(wanted: string, signal: AbortSignal): Promise<void> {
  try {
    const got = await api.metricNames(wanted, namesLimit, signal);
    narrowed.value = { match: wanted, names: got.data };
  } catch (e) {
    if (!signal.aborted) searchError.value = e instanceof Error ? e.message : String(e);
  }
}

async function loadValues(label: string): Promise<void> {
  const got = await api
    .labelValues(label, null, 1000, AbortSignal.timeout(10_000))
    .catch(() => null);
  if (got !== null) values.value = new Map(values.peek()).set(label, got.data);
}
