import { expect, it } from 'vitest';
import { facets, splitLabels } from './labels';

const series = [
  { __name__: 'm', job: 'a', cpu: '10' },
  { __name__: 'm', job: 'a', cpu: '2', zone: 'x' },
];

it('says common labels once and keeps those that differ', () => {
  expect(splitLabels(series)).toEqual({ common: { job: 'a' }, differing: ['cpu', 'zone'] });
  expect(splitLabels([{ __name__: 'a' }, { __name__: 'b' }]).differing).toEqual(['__name__']);
  expect(splitLabels([])).toEqual({ common: {}, differing: [] });
});

it('counts the values of labels, and the lack of one', () => {
  expect(facets(series)).toEqual([
    {
      label: 'cpu',
      values: [
        { value: '2', count: 1 },
        { value: '10', count: 1 },
      ],
    },
    { label: 'job', values: [{ value: 'a', count: 2 }] },
    {
      label: 'zone',
      values: [
        { value: '', count: 1 },
        { value: 'x', count: 1 },
      ],
    },
  ]);
});
