/** The state that a shared link carries, in the fragment: #/?m=up&rate=off */

export interface Place {
  selector: string;
  /** null: as the metric's name suggests. */
  rate: boolean | null;
  zoom: [number, number] | null;
  /** The series that are shown alone, by the ends of their ids; empty: all. */
  only: string[];
}

export const nowhere: Place = { selector: '', rate: null, zoom: null, only: [] };

export function readPlace(hash: string): Place {
  const at = hash.indexOf('?');
  const p = new URLSearchParams(at < 0 ? '' : hash.slice(at + 1));
  const rate = p.get('rate');
  const from = Number(p.get('from') ?? NaN);
  const to = Number(p.get('to') ?? NaN);
  return {
    selector: p.get('m') ?? '',
    rate: rate === 'on' ? true : rate === 'off' ? false : null,
    zoom: Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : null,
    only: (p.get('only') ?? '').split('.').filter((id) => /^[0-9a-f]+$/.test(id)),
  };
}

export function writePlace(place: Place): string {
  const p = new URLSearchParams();
  if (place.selector !== '') p.set('m', place.selector);
  if (place.rate !== null) p.set('rate', place.rate ? 'on' : 'off');
  if (place.zoom !== null) {
    p.set('from', String(Math.round(place.zoom[0])));
    p.set('to', String(Math.round(place.zoom[1])));
  }
  if (place.only.length > 0) p.set('only', place.only.join('.'));
  const query = p.toString();
  return query === '' ? '#/' : `#/?${query}`;
}

/** What is left of a series id in a link. Its beginning is the same for all series of a metric. */
export function shortId(id: string): string {
  return id.slice(-8);
}
