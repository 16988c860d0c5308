/** Asking the server: when the place changes, and again every few seconds. */

import { batch, effect } from '@preact/signals';
import * as api from './api';
import { firstMetric } from './search';
import { formatSelector } from './selector';
import * as state from './state';

const chartEvery = 15_000;
/** An empty store is asked often: somebody is waiting for the first sample. */
const startEvery = 5_000;
const namesEvery = 60_000;

export const namesLimit = 10_000;
const seriesLimit = 2_000;

/** One question at a time: a new one cancels the one before. */
class Question {
  private running: AbortController | null = null;

  async ask(work: (signal: AbortSignal) => Promise<void>, failed: (e: api.ApiError) => void) {
    this.cancel();
    const mine = new AbortController();
    this.running = mine;
    try {
      await work(mine.signal);
    } catch (e) {
      if (mine.signal.aborted) return;
      failed(e instanceof api.ApiError ? e : new api.ApiError('page', String(e)));
    } finally {
      if (this.running === mine) this.running = null;
    }
  }

  cancel(): void {
    this.running?.abort();
    this.running = null;
  }
}

const chartQuestion = new Question();
const namesQuestion = new Question();
const labelsQuestion = new Question();
const seriesQuestion = new Question();

let chartAt = 0;
let namesAt = 0;

export function loadNames(): Promise<void> {
  namesAt = Date.now();
  return namesQuestion.ask(
    async (signal) => {
      const got = await api.metricNames(null, namesLimit, signal);
      batch(() => {
        state.namesError.value = null;
        if (!same(got, state.names.value)) state.names.value = got;
      });
    },
    (e) => (state.namesError.value = e),
  );
}

function same(a: api.Answer<string[]>, b: api.Answer<string[]> | null): boolean {
  return b?.data.length === a.data.length && a.data.every((n, i) => n === b.data[i]);
}

export function loadChart(): Promise<void> {
  const selector = state.selector.value;
  if (selector === '') return Promise.resolve();
  chartAt = Date.now();
  return chartQuestion.ask(
    async (signal) => {
      const got = await api.chart(selector, state.chartLimit, signal);
      batch(() => {
        state.chartError.value = null;
        state.answer.value = { ...got, selector, at: Date.now() };
      });
    },
    (e) => {
      batch(() => {
        state.chartError.value = e;
        // A failed refresh leaves the chart; a failed new one must not show what was before.
        if (state.behind.value) state.answer.value = null;
      });
    },
  );
}

function loadSeries(name: string): Promise<void> {
  return seriesQuestion.ask(
    async (signal) => {
      const match = formatSelector({ name, matchers: [] });
      const got = await api.seriesOf(match, seriesLimit, signal);
      state.metricSeries.value = { ...got, name };
    },
    () => (state.metricSeries.value = null),
  );
}

function loadLabels(): Promise<void> {
  return labelsQuestion.ask(
    async (signal) => {
      const got = await api.labelNames(signal);
      state.labelNames.value = got.data.filter((l) => l !== '__name__');
    },
    () => undefined,
  );
}

/** Asks for whatever is due. */
function tick(): void {
  if (document.hidden || state.paused.value) return;
  const now = Date.now();
  const empty = state.names.value === null || state.names.value.data.length === 0;
  if (now - namesAt >= (empty ? startEvery : namesEvery)) void loadNames();
  if (now - chartAt >= chartEvery) void loadChart();
}

/** Starts asking, and keeps on until the page is left. */
export function start(): void {
  void loadNames();
  effect(() => {
    const first = firstMetric(state.names.value?.data ?? []);
    if (state.selector.value === '' && first !== undefined) {
      state.go({ selector: formatSelector({ name: first, matchers: [] }) }, 'replace');
    }
  });
  effect(() => {
    const what = state.metric.value === '' ? state.selector.value : state.metric.value;
    document.title = what === '' ? 'daybook' : `${what} · daybook`;
  });
  effect(() => {
    if (state.selector.value !== '') void loadChart();
  });
  effect(() => {
    const name = state.metric.value;
    if (name !== '') void loadSeries(name);
  });
  effect(() => {
    if ((state.names.value?.data.length ?? 0) > 0) void loadLabels();
  });
  setInterval(tick, 1000);
  document.addEventListener('visibilitychange', tick);
  addEventListener('hashchange', state.followUrl);
  addEventListener('popstate', state.followUrl);
}
