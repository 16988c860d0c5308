/** The state of the page: what is looked at, what the server said of it, and what follows from both. */

import { batch, computed, signal } from '@preact/signals';
import type { Answer, ApiError, ChartData } from './api';
import { clean, join, rate as toRate, rateWindow, stats, type Cell, type Stats } from './columns';
import { facets, naturally, splitLabels, type Facet, type Labels } from './labels';
import { matches, parseSelector } from './selector';
import { guessUnit, isCounter, isTotal, plain, type Unit } from './units';
import { nowhere, readPlace, shortId, writePlace, type Place } from './url';

/** The most series that one chart draws. */
export const chartLimit = 20;

// What is looked at; the URL carries it.
export const place = signal<Place>(readPlace(location.hash));

// What the server said.
export const names = signal<Answer<string[]> | null>(null);
export const namesError = signal<ApiError | null>(null);
export const labelNames = signal<string[]>([]);
/** All series of the metric, whatever the filters. */
export const metricSeries = signal<(Answer<Labels[]> & { name: string }) | null>(null);
export const answer = signal<(Answer<ChartData> & { selector: string; at: number }) | null>(null);
export const chartError = signal<ApiError | null>(null);

export const paused = signal(false);
/** The series that the pointer is over in the legend. */
export const pointed = signal<string | null>(null);
/** Where the cursor stands in the chart. */
export const cursor = signal<{ index: number; left: number; top: number } | null>(null);

export const selector = computed(() => place.value.selector);
export const parsed = computed(() => parseSelector(selector.value));
/** The metric looked at; '' when the selector names none, or cannot be taken apart. */
export const metric = computed(() => parsed.value?.name ?? '');
/** Whether the chart shown belongs to what was asked before. */
export const behind = computed(
  () => answer.value !== null && answer.value.selector !== selector.value,
);

const metricsShown = computed(() => {
  const series = answer.value?.data.series ?? [];
  const shown = new Set(series.map((s) => s.labels.__name__ ?? ''));
  const asked = parsed.value?.name;
  return shown.size > 0 ? [...shown] : asked ? [asked] : [];
});

export const canRate = computed(
  () => metricsShown.value.length > 0 && metricsShown.value.every(isCounter),
);
export const rateOn = computed(
  () => canRate.value && (place.value.rate ?? metricsShown.value.every(isTotal)),
);

export const unit = computed<Unit>(() => {
  const [first, ...others] = metricsShown.value.map((n) => guessUnit(n, rateOn.value));
  if (first === undefined) return plain;
  return others.every((u) => u.kind === first.kind) ? first : { ...first, kind: 'none' };
});

/** The times at the ends of the chart. */
export const range = computed<[number, number]>(() => {
  const data = answer.value?.data;
  return place.value.zoom ?? (data ? [data.from, data.to] : [0, 1]);
});

/** The window that a rate is taken over, in milliseconds; one for all, so that it can be named. */
export const window = computed(() => {
  const span = range.value[1] - range.value[0];
  return Math.max(0, ...(answer.value?.data.series ?? []).map((s) => rateWindow(s.t, span)));
});

export interface Line {
  id: string;
  labels: Labels;
  /** Its place in the answer decides its colour. */
  index: number;
  t: number[];
  v: (number | null)[];
}

/** How many series the selector has, as far as it is known here. */
export const matching = computed<number | null>(() => {
  const s = parsed.value;
  const all = metricSeries.value;
  if (s === null || all?.name !== s.name || all.warnings.length > 0) return null;
  return all.data.filter((l) => s.matchers.every((m) => matches(l, m))).length;
});

/** The series of the answer as they are drawn, in the order of their labels. */
export const lines = computed<Line[]>(() => {
  const series = [...(answer.value?.data.series ?? [])].slice(0, chartLimit);
  const { differing } = splitLabels(series.map((s) => s.labels));
  series.sort((a, b) => {
    for (const label of differing) {
      const order = naturally(a.labels[label] ?? '', b.labels[label] ?? '');
      if (order !== 0) return order;
    }
    return 0;
  });
  return series.map((s, index) => {
    const own = clean(s);
    const c = rateOn.value ? toRate(own, window.value) : own;
    return { id: s.id, labels: s.labels, index, t: c.t, v: c.v };
  });
});

export const split = computed(() => splitLabels(lines.value.map((l) => l.labels)));

export const joined = computed<{ xs: number[]; ys: Cell[][] }>(() => join(lines.value));

export const lineStats = computed<Map<string, Stats>>(() => {
  const [from, to] = range.value;
  return new Map(lines.value.map((l) => [l.id, stats(l, from, to)]));
});

/** Ids of the series that are switched off. Where none of the chosen is left, all are shown. */
export const hidden = computed<Set<string>>(() => {
  const only = new Set(place.value.only);
  const off = lines.value.filter((l) => !only.has(shortId(l.id)));
  return new Set(off.length === lines.value.length ? [] : off.map((l) => l.id));
});

/** Labels to filter by: the values that the other filters leave, and those that are chosen. */
export const filters = computed<Facet[]>(() => {
  const s = parsed.value;
  const all = metricSeries.value;
  if (s === null || all?.name !== s.name) return [];
  return facets(all.data).flatMap(({ label }) => {
    const others = s.matchers.filter((m) => m.label !== label);
    const left = all.data.filter((l) => others.every((m) => matches(l, m)));
    return facets(left).filter((f) => f.label === label);
  });
});

// Changes of place. A new metric is a step in the history, a refinement is not.

export function go(to: Partial<Place>, how: 'push' | 'replace' = 'push'): void {
  batch(() => {
    const next = { ...place.value, ...to };
    if (to.selector !== undefined && to.selector !== place.value.selector) {
      next.only = [];
      cursor.value = null;
      chartError.value = null;
      if (parseSelector(to.selector)?.name !== parsed.value?.name) next.rate = null;
    }
    place.value = next;
  });
  const url = writePlace(place.value);
  if (url === location.hash) return;
  if (how === 'push') history.pushState(null, '', url);
  else history.replaceState(null, '', url);
}

export function followUrl(): void {
  place.value = { ...nowhere, ...readPlace(location.hash) };
}

/** A click in the legend shows one series alone, or all again; with `add` it adds or removes one. */
export function toggleLine(id: string, add: boolean): void {
  const ids = lines.value.map((l) => l.id);
  const shown = ids.filter((i) => !hidden.value.has(i));
  let next: string[];
  if (add) next = shown.includes(id) ? shown.filter((i) => i !== id) : [...shown, id];
  else next = shown.length === 1 && shown[0] === id ? [] : [id];
  if (next.length === ids.length) next = [];
  go({ only: next.map(shortId) }, 'replace');
}
