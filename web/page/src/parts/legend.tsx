import type { JSX } from 'preact';
import { valueAt } from '../columns';
import { lineColor, lineDash, theme } from '../palette';
import {
  answer,
  behind,
  chartLimit,
  cursor,
  hidden,
  joined,
  lines,
  lineStats,
  pointed,
  split,
  toggleLine,
  unit,
  type Line,
} from '../state';
import { formatValue } from '../units';

/** The series as a table: what tells them apart, and their values. It is the chart in words, too. */
export function Legend() {
  if (lines.value.length === 0) return null;
  const { common, differing } = split.value;
  const columns = differing.length > 0 ? differing : [''];
  return (
    <section class={behind.value ? 'legend behind' : 'legend'} aria-label="Series">
      <Warnings />
      {Object.keys(common).length > 0 && (
        <p class="common">
          <span class="common-what">{lines.value.length > 1 ? 'All series' : 'Labels'}</span>
          {Object.entries(common).map(([k, v]) => (
            <span class="pair" key={k}>
              <span class="pair-name">{k}</span>={v}
            </span>
          ))}
        </p>
      )}
      <div class="legend-scroll">
        <table>
          <thead>
            <tr>
              {columns.map((name) => (
                <th key={name} scope="col">
                  {name === '' ? 'series' : name === '__name__' ? 'name' : name}
                </th>
              ))}
              <th scope="col" class="number">
                {cursor.value === null ? 'last' : 'here'}
              </th>
              <th scope="col" class="number wide-only">
                min
              </th>
              <th scope="col" class="number">
                max
              </th>
            </tr>
          </thead>
          <tbody>
            {lines.value.map((line) => (
              <Row key={line.id} line={line} differing={differing} />
            ))}
          </tbody>
        </table>
      </div>
      {lines.value.length > 1 && (
        <p class="hint wide-only">
          Click a series to see it alone, <kbd>Ctrl</kbd> click to add or remove one. Drag in the
          chart to zoom, double click to come back.
        </p>
      )}
    </section>
  );
}

function Warnings() {
  const warnings = answer.value?.warnings ?? [];
  if (warnings.length === 0) return null;
  const cut = lines.value.length >= chartLimit;
  return (
    <p class="warnings" role="status">
      {warnings.map((w) => w.replace(/\.?$/, '. ')).join('')}
      {cut && 'Narrow them with a label above.'}
    </p>
  );
}

function Row({ line, differing }: { line: Line; differing: string[] }) {
  const off = hidden.value.has(line.id);
  const s = lineStats.value.get(line.id);
  const cells = differing.length > 0 ? differing : [''];
  const toggle = (e: { ctrlKey: boolean; metaKey: boolean; shiftKey: boolean }) => {
    toggleLine(line.id, e.ctrlKey || e.metaKey || e.shiftKey);
  };
  return (
    <tr
      class={off ? 'off' : ''}
      onMouseEnter={() => (pointed.value = line.id)}
      onMouseLeave={() => (pointed.value = null)}
      onClick={toggle}
    >
      {cells.map((name, i) => {
        const value = name === '' ? (line.labels.__name__ ?? '') : (line.labels[name] ?? '');
        return (
          <td key={name}>
            {i === 0 ? (
              <button
                type="button"
                class="series"
                aria-pressed={!off}
                onFocus={() => (pointed.value = line.id)}
                onBlur={() => (pointed.value = null)}
              >
                <Swatch index={line.index} />
                {text(value)}
              </button>
            ) : (
              text(value)
            )}
          </td>
        );
      })}
      <td class="number">{formatValue(shown(line, s?.last ?? null), unit.value)}</td>
      <td class="number wide-only">{formatValue(s?.min ?? null, unit.value)}</td>
      <td class="number">{formatValue(s?.max ?? null, unit.value)}</td>
    </tr>
  );
}

/** The value under the cursor, or else the last one. */
function shown(line: Line, last: number | null): number | null {
  if (cursor.value === null) return last;
  const column = joined.value.ys[line.index] ?? [];
  const at = valueAt(column, cursor.value.index);
  return at === null ? null : (column[at] ?? null);
}

function text(value: string): JSX.Element {
  return value === '' ? <span class="none">(none)</span> : <>{value}</>;
}

export function Swatch({ index }: { index: number }) {
  return (
    <svg class="swatch" viewBox="0 0 18 4" aria-hidden="true">
      <path
        d="M1 2h16"
        stroke={lineColor(index, theme.value)}
        stroke-width="3"
        stroke-dasharray={lineDash(index).join(' ')}
      />
    </svg>
  );
}
