/** The server's HTTP API, as far as this page uses it. Every answer is checked where it comes in. */

import type { Columns } from './columns';
import type { Labels } from './labels';

export interface Answer<T> {
  data: T;
  warnings: string[];
}

export interface Cost {
  pointReads: number;
  rowsScanned: number;
  bytes: number;
  ms: number;
}

export interface ChartSeries extends Columns {
  id: string;
  labels: Labels;
}

export interface ChartData {
  from: number;
  to: number;
  series: ChartSeries[];
  cost: Cost;
}

/** type: the server's errorType, or 'network' when there was no answer, or 'answer' for a strange one. */
export class ApiError extends Error {
  readonly type: string;

  constructor(type: string, message: string) {
    super(message);
    this.type = type;
  }
}

type Params = Record<string, string | number>;

async function get(path: string, params: Params, signal: AbortSignal): Promise<Answer<unknown>> {
  const query = new URLSearchParams(Object.entries(params).map(([k, v]) => [k, String(v)]));
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(`/api/v1/${path}?${query.toString()}`, { signal });
    body = await response.json().catch(() => null);
  } catch (e) {
    if (signal.aborted) throw e;
    throw new ApiError('network', `No answer from ${location.host}.`);
  }
  signal.throwIfAborted();
  if (!isObject(body)) {
    throw new ApiError('answer', `HTTP ${response.status}, and the answer is not JSON.`);
  }
  if (body.status !== 'success') {
    throw new ApiError(text(body.errorType) || 'answer', text(body.error) || 'Unknown error.');
  }
  const warnings = list(body.warnings).map(text);
  return { data: body.data, warnings };
}

export async function metricNames(
  match: string | null,
  limit: number,
  signal: AbortSignal,
): Promise<Answer<string[]>> {
  return labelValues('__name__', match, limit, signal);
}

export async function labelValues(
  label: string,
  match: string | null,
  limit: number,
  signal: AbortSignal,
): Promise<Answer<string[]>> {
  const params: Params = match === null ? { limit } : { 'match[]': match, limit };
  const { data, warnings } = await get(`label/${encodeURIComponent(label)}/values`, params, signal);
  return { data: list(data).map(text), warnings };
}

export async function labelNames(signal: AbortSignal): Promise<Answer<string[]>> {
  const { data, warnings } = await get('labels', { limit: 1000 }, signal);
  return { data: list(data).map(text), warnings };
}

export async function seriesOf(
  match: string,
  limit: number,
  signal: AbortSignal,
): Promise<Answer<Labels[]>> {
  const { data, warnings } = await get('series', { 'match[]': match, limit }, signal);
  return { data: list(data).map(labelSet), warnings };
}

export async function chart(
  match: string,
  limit: number,
  signal: AbortSignal,
): Promise<Answer<ChartData>> {
  const params = { 'match[]': match, span: '24h', limit };
  const { data, warnings } = await get('chart', params, signal);
  if (!isObject(data)) throw new ApiError('answer', 'The chart is missing in the answer.');
  const cost = isObject(data.cost) ? data.cost : {};
  const to = number(data.to) || Date.now();
  return {
    data: {
      to,
      from: number(data.from) || to - 86_400_000,
      series: list(data.series).filter(isObject).map(chartSeries),
      cost: {
        pointReads: number(cost.pointReads),
        rowsScanned: number(cost.rowsScanned),
        bytes: number(cost.bytes),
        ms: number(cost.ms),
      },
    },
    warnings,
  };
}

function chartSeries(s: Record<string, unknown>): ChartSeries {
  const values = list(s.v);
  const t = list(s.t).map(number);
  const v = t.map((_, i) => {
    const value = values[i];
    return typeof value === 'number' && Number.isFinite(value) ? value : null;
  });
  return { id: text(s.id), labels: labelSet(s.labels), t, v };
}

function labelSet(value: unknown): Labels {
  if (!isObject(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, text(v)]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
