import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiError, chart, labelValues, metricNames } from './api';

const never = new AbortController().signal;

function answer(body: string, status = 200) {
  const fetched = vi.fn<(url: string) => Promise<Response>>();
  fetched.mockResolvedValue(new Response(body, { status }));
  vi.stubGlobal('fetch', fetched);
  vi.stubGlobal('location', { host: 'daybook:9201' });
  return fetched;
}

afterEach(() => {
  vi.unstubAllGlobals();
});

describe('the API', () => {
  it('asks with everything escaped', async () => {
    const fetched = answer('{"status":"success","data":["a"]}');
    await labelValues('a/b', 'up{x="&"}', 5, never);
    expect(fetched.mock.calls[0]?.[0]).toBe(
      '/api/v1/label/a%2Fb/values?match%5B%5D=up%7Bx%3D%22%26%22%7D&limit=5',
    );
  });

  it('makes a chart of an answer, holes included', async () => {
    const series = '{"id":"ab","labels":{"a":"b"},"t":[1,2,3],"v":[1,null]}';
    answer(
      `{"status":"success","data":{"from":1,"to":9,"series":[${series}],"cost":{"pointReads":1}},"warnings":["cut"]}`,
    );
    const got = await chart('up', 20, never);
    expect(got.data.series).toEqual([
      { id: 'ab', labels: { a: 'b' }, t: [1, 2, 3], v: [1, null, null] },
    ]);
    expect(got.data.cost).toEqual({ pointReads: 1, rowsScanned: 0, bytes: 0, ms: 0 });
    expect(got.warnings).toEqual(['cut']);
  });

  it.each([
    ['{"status":"error","errorType":"bad_data","error":"no"}', 400, 'bad_data', 'no'],
    ['<html>', 502, 'answer', 'HTTP 502, and the answer is not JSON.'],
    ['[]', 200, 'answer', 'HTTP 200, and the answer is not JSON.'],
  ])('%s is an error', async (body, status, type, message) => {
    answer(body, status);
    const error: unknown = await metricNames(null, 1, never).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ type, message });
  });

  it('says who did not answer', async () => {
    answer('');
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
    await expect(metricNames(null, 1, never)).rejects.toMatchObject({
      type: 'network',
      message: 'No answer from daybook:9201.',
    });
  });
});
