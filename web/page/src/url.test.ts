import { describe, expect, it } from 'vitest';
import { nowhere, readPlace, shortId, writePlace, type Place } from './url';

describe('the place in the URL', () => {
  it.each<Place>([
    nowhere,
    { ...nowhere, selector: 'a{b="c&d=#?% \\"\\n日"}' },
    { selector: 'up', rate: false, zoom: [1000, 2000], only: ['0a1b2c3d', 'ffffffff'] },
  ])('comes back: %j', (place) => {
    expect(readPlace(writePlace(place))).toEqual(place);
  });

  it.each(['', '#', '#/', '#/?', '#/?rate=x&from=b&to=1', '#/?from=5&to=1', '#/?only=<b>'])(
    'nonsense is nowhere: %j',
    (hash) => {
      expect(readPlace(hash)).toEqual(nowhere);
    },
  );

  it('keeps the end of an id, as all series of a metric begin alike', () => {
    expect(shortId('00112233445566778899aabbccddeeff')).toBe('ccddeeff');
  });
});
