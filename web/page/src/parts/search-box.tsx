import type { JSX, TargetedKeyboardEvent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { metric, names, namesError, selector } from '../state';
import {
  active,
  found,
  input,
  open,
  searchError,
  suggestions,
  take,
  type Suggestion,
} from '../suggest';
import { count } from '../units';

function optionId(i: number): string {
  return `option-${i}`;
}

function choose(s: Suggestion, box: HTMLInputElement | null): void {
  const over = take(s);
  open.value = !over;
  if (over) box?.blur();
  else box?.focus();
}

/** The box. Its list stands in Results: beside the chart on a wide page, under the box on a small one. */
export function SearchBox() {
  const box = useRef<HTMLInputElement>(null);

  useEffect(() => {
    const slash = (e: KeyboardEvent) => {
      const typing = e.target instanceof HTMLInputElement;
      if (e.key !== '/' || typing || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      box.current?.focus();
      box.current?.select();
    };
    addEventListener('keydown', slash);
    return () => {
      removeEventListener('keydown', slash);
    };
  }, []);

  const onKeyDown = (e: TargetedKeyboardEvent<HTMLInputElement>) => {
    const last = suggestions.value.length - 1;
    const move = (to: number) => {
      e.preventDefault();
      open.value = true;
      active.value = to < 0 ? last : to > last ? 0 : to;
    };
    if (e.key === 'ArrowDown') move(active.value + 1);
    else if (e.key === 'ArrowUp') move(active.value - 1);
    else if (e.key === 'PageDown') move(Math.min(last, active.value + 10));
    else if (e.key === 'PageUp') move(Math.max(0, active.value - 10));
    else if (e.key === 'Enter') {
      const s = suggestions.value[active.value];
      if (s !== undefined) choose(s, box.current);
    } else if (e.key === 'Escape') {
      if (input.value !== '') input.value = '';
      else e.currentTarget.blur();
    }
  };

  return (
    <div class="search" role="search">
      <svg class="lens" viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="7" cy="7" r="4.5" />
        <path d="M10.5 10.5L14 14" />
      </svg>
      <input
        ref={box}
        type="text"
        role="combobox"
        aria-label="Search metrics and labels"
        aria-expanded={open.value}
        aria-controls="results"
        aria-autocomplete="list"
        aria-activedescendant={suggestions.value.length > 0 ? optionId(active.value) : undefined}
        placeholder="Search, like cpu mode=idle"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        enterkeyhint="go"
        value={input.value}
        onInput={(e) => {
          input.value = e.currentTarget.value;
          open.value = true;
        }}
        onFocus={() => (open.value = true)}
        onBlur={() => (open.value = false)}
        onKeyDown={onKeyDown}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

export function Results() {
  const list = useRef<HTMLUListElement>(null);
  const at = active.value;

  useEffect(() => {
    if (open.value) document.getElementById(optionId(at))?.scrollIntoView({ block: 'nearest' });
  }, [at]);

  // The metric that is drawn stands in sight when the page opens.
  const known = names.value !== null;
  useEffect(() => {
    if (!open.value)
      list.current?.querySelector('.option-current')?.scrollIntoView({ block: 'nearest' });
  }, [known, metric.value]);

  const { hits, total } = found.value;
  return (
    <aside
      class={open.value ? 'results results-open' : 'results'}
      aria-label="Metrics"
      // The box keeps the focus while the list is clicked.
      onMouseDown={(e) => {
        e.preventDefault();
      }}
    >
      <p class="results-count" aria-live="polite">
        {names.value === null ? ' ' : resultCount(total)}
      </p>
      {searchError.value !== null && <p class="results-note">{searchError.value}</p>}
      {namesError.value !== null && selector.value !== '' && (
        <p class="results-note">{namesError.value.message}</p>
      )}
      <ul id="results" role="listbox" aria-label="Metrics and labels" ref={list}>
        {suggestions.value.map((s, i) => (
          <Option key={s.key} s={s} i={i} />
        ))}
      </ul>
      {total > hits.length && (
        <p class="results-note">{count(total - hits.length, 'more metric')}. Type to find them.</p>
      )}
      {names.value !== null && suggestions.value.length === 0 && (
        <p class="results-note">
          Nothing fits. Search by a piece of a name (<code>cpu</code>), by labels (
          <code>mode=idle</code>), or write a selector: <code>{'up{job="node"}'}</code>
        </p>
      )}
    </aside>
  );
}

function resultCount(total: number): string {
  const all = names.value?.data.length ?? 0;
  if (input.value.trim() === '' || total === all) {
    const cut = (names.value?.warnings.length ?? 0) > 0;
    return cut ? `First ${count(all, 'metric')}` : count(all, 'metric');
  }
  return `${total.toLocaleString('en-US')} of ${count(all, 'metric')}`;
}

function Option({ s, i }: { s: Suggestion; i: number }) {
  const current = s.kind === 'metric' && s.hit.name === metric.value;
  const classes = ['option', `option-${s.kind}`];
  if (i === active.value && open.value) classes.push('option-active');
  if (current) classes.push('option-current');
  return (
    <li
      id={optionId(i)}
      role="option"
      class={classes.join(' ')}
      aria-selected={current}
      onClick={() => {
        choose(s, document.querySelector<HTMLInputElement>('.search input'));
      }}
    >
      {optionText(s)}
    </li>
  );
}

function optionText(s: Suggestion): JSX.Element {
  switch (s.kind) {
    case 'metric':
      return <Marked text={s.hit.name} at={s.hit.at} />;
    case 'selector':
      return (
        <>
          <span class="option-what">Draw</span> {s.text}
        </>
      );
    case 'label':
      return (
        <>
          <span class="option-what">Label</span> {s.label}=
        </>
      );
    case 'value':
      return (
        <>
          <span class="option-what">Value</span> {s.label}={s.value}
        </>
      );
    case 'filter':
      return (
        <>
          <span class="option-what">Filter</span> {s.label}={s.value === '' ? '""' : s.value}
        </>
      );
  }
}

/** A name with the characters that matched set off, and line breaks allowed after underscores. */
function Marked({ text, at }: { text: string; at: number[] }) {
  const hit = new Set(at);
  const parts: JSX.Element[] = [];
  for (let from = 0; from < text.length;) {
    const on = hit.has(from);
    let to = from + 1;
    while (to < text.length && hit.has(to) === on && text.charAt(to - 1) !== '_') to++;
    const piece = text.slice(from, to);
    parts.push(on ? <mark key={from}>{piece}</mark> : <span key={from}>{piece}</span>);
    if (piece.endsWith('_')) parts.push(<wbr key={`w${from}`} />);
    from = to;
  }
  return <>{parts}</>;
}
