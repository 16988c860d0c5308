import { answer, chartError } from '../state';
import { clock } from '../time';
import { count, formatSize } from '../units';

/** What the last answer cost, and when it came. */
export function Footer() {
  const a = answer.value;
  return (
    <footer class="foot">
      {a !== null && (
        <>
          <span>{costText()}</span>
          <span>
            {chartError.value !== null && 'not '}updated{chartError.value !== null && ' since'}{' '}
            <time dateTime={new Date(a.at).toISOString()}>{clock(a.at)}</time> UTC
          </span>
        </>
      )}
    </footer>
  );
}

function costText(): string {
  const data = answer.value?.data;
  if (data === undefined) return '';
  const { pointReads, rowsScanned, bytes, ms } = data.cost;
  const samples = data.series.reduce((n, s) => n + s.t.length, 0);
  const parts = [count(pointReads, 'point read')];
  if (rowsScanned > 0) parts.push(count(rowsScanned, 'row') + ' scanned');
  parts.push(count(samples, 'sample'), formatSize(bytes), `${ms.toFixed(ms < 10 ? 1 : 0)} ms`);
  return parts.join(' · ');
}
