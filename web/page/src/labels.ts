/** Which labels tell series apart, and which are the same for all. */

export type Labels = Record<string, string>;

export interface Split {
  common: Labels;
  /** Names of the labels that differ, sorted, __name__ first. */
  differing: string[];
}

export function splitLabels(series: Labels[]): Split {
  const names = new Set(series.flatMap((l) => Object.keys(l)));
  const common: Labels = {};
  const differing: string[] = [];
  for (const name of [...names].sort()) {
    const value = series[0]?.[name] ?? '';
    if (series.every((l) => (l[name] ?? '') === value)) common[name] = value;
    else differing.push(name);
  }
  delete common.__name__;
  return { common, differing };
}

export interface Facet {
  label: string;
  /** Values with how many series have them; '' where a series lacks the label. */
  values: { value: string; count: number }[];
}

/** Values of every label, in natural order. */
export function facets(series: Labels[]): Facet[] {
  const names = new Set(series.flatMap((l) => Object.keys(l)));
  names.delete('__name__');
  return [...names].sort().map((label) => {
    const counts = new Map<string, number>();
    for (const l of series) {
      const value = l[label] ?? '';
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    const values = [...counts].map(([value, count]) => ({ value, count }));
    values.sort((a, b) => naturally(a.value, b.value));
    return { label, values };
  });
}

const collator = new Intl.Collator('en', { numeric: true });

/** cpu2 before cpu10. */
export function naturally(a: string, b: string): number {
  return collator.compare(a, b);
}
