import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Facet } from '../labels';
import { choices, formatSelector, toggleValue, type Matcher, type Selector } from '../selector';
import { filters, go, metricSeries, parsed } from '../state';
import { count } from '../units';

/** One button per label that tells series apart, one chip per matcher. */
export function Filters() {
  const s = parsed.value;
  if (s === null) return null;
  const facets = new Map(filters.value.map((f) => [f.label, f]));
  // Labels with one value for all have nothing to choose; the legend names them.
  const free = filters.value.filter(
    (f) => f.values.length > 1 && !s.matchers.some((m) => m.label === f.label),
  );
  return (
    <div class="filters">
      {s.matchers.map((m, i) => (
        <Chip key={`${m.label}${m.op}${i}`} s={s} m={m} facet={facets.get(m.label)} />
      ))}
      {free.map((f) => (
        <Picker key={f.label} s={s} facet={f} chosen={[]}>
          {f.label}
          <span class="chip-count">{f.values.length}</span>
        </Picker>
      ))}
      {(metricSeries.value?.warnings.length ?? 0) > 0 && free.length > 0 && (
        <span class="filters-note">
          values of the first {count(metricSeries.value?.data.length ?? 0, 'series', 'series')}
        </span>
      )}
    </div>
  );
}

function apply(s: Selector): void {
  // With nothing left the page opens as it does without a link.
  go({ selector: formatSelector(s) });
}

function Chip({ s, m, facet }: { s: Selector; m: Matcher; facet: Facet | undefined }) {
  const chosen = choices(m);
  const text =
    chosen === null
      ? `${m.label} ${m.op} ${m.value}`
      : `${m.label} = ${chosen.map((v) => (v === '' ? '(none)' : v)).join(', ')}`;
  const remove = () => {
    apply({ ...s, matchers: s.matchers.filter((other) => other !== m) });
  };
  return (
    <span class="chip chip-on">
      {chosen === null || facet === undefined ? (
        <span class="chip-text">{text}</span>
      ) : (
        <Picker s={s} facet={facet} chosen={chosen} bare>
          {text}
        </Picker>
      )}
      <button type="button" class="chip-remove" aria-label={`Remove ${text}`} onClick={remove}>
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d="M3 3l6 6M9 3l-6 6" />
        </svg>
      </button>
    </span>
  );
}

interface PickerProps {
  s: Selector;
  facet: Facet;
  chosen: string[];
  bare?: boolean;
  children: preact.ComponentChildren;
}

/** A button that unfolds the values of a label. */
function Picker({ s, facet, chosen, bare, children }: PickerProps) {
  const open = useSignal(false);
  const typed = useSignal('');
  const root = useRef<HTMLSpanElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (!open.value) return;
    const outside = (e: PointerEvent) => {
      if (e.target instanceof Node && root.current?.contains(e.target) === false)
        open.value = false;
    };
    addEventListener('pointerdown', outside);
    root.current?.querySelector<HTMLElement>('.values input, .values button')?.focus();
    return () => {
      removeEventListener('pointerdown', outside);
    };
  }, [open.value]);

  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === 'Escape') {
      open.value = false;
      button.current?.focus();
    } else if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      const items = [
        ...(root.current?.querySelectorAll<HTMLElement>('.values input, .values button') ?? []),
      ];
      const at = items.indexOf(document.activeElement as HTMLElement);
      items[(at + (e.key === 'ArrowDown' ? 1 : items.length - 1)) % items.length]?.focus();
      e.preventDefault();
    }
  };

  const shown = facet.values.filter((v) =>
    v.value.toLowerCase().includes(typed.value.toLowerCase()),
  );
  return (
    <span
      class="picker"
      ref={root}
      onKeyDown={onKeyDown}
      onFocusOut={(e) => {
        const to = e.relatedTarget;
        if (to instanceof Node && root.current?.contains(to) === false) open.value = false;
      }}
    >
      <button
        type="button"
        ref={button}
        class={bare ? 'chip-text' : 'chip'}
        aria-expanded={open.value}
        onClick={() => {
          typed.value = '';
          open.value = !open.value;
        }}
      >
        {children}
      </button>
      {open.value && (
        <div class="values" role="group" aria-label={`Values of ${facet.label}`}>
          {facet.values.length > 8 && (
            <input
              type="text"
              aria-label={`Search values of ${facet.label}`}
              placeholder={count(facet.values.length, 'value')}
              value={typed.value}
              spellcheck={false}
              onInput={(e) => (typed.value = e.currentTarget.value)}
            />
          )}
          <div class="values-list">
            {shown.slice(0, 200).map(({ value, count: n }) => (
              <button
                type="button"
                key={value}
                aria-pressed={chosen.includes(value)}
                onClick={() => {
                  apply(toggleValue(s, facet.label, value));
                }}
              >
                <span class="check" aria-hidden="true" />
                <span class="value-text">{value === '' ? '(none)' : value}</span>
                <span class="value-count">{n}</span>
              </button>
            ))}
            {shown.length > 200 && (
              <p class="results-note">{count(shown.length - 200, 'more value')}.</p>
            )}
          </div>
        </div>
      )}
    </span>
  );
}
