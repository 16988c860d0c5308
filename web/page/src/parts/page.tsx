import { answer, chartError, names, namesError, paused, selector } from '../state';
import { input } from '../suggest';
import { Chart } from './chart';
import { Filters } from './filters';
import { Footer } from './footer';
import { Heading } from './heading';
import { Legend } from './legend';
import { Problem } from './problem';
import { Results, SearchBox } from './search-box';
import { Start } from './start';

export function Page() {
  const empty = names.value?.data.length === 0;
  return (
    <div class={empty ? 'page page-empty' : 'page'}>
      <header class="top">
        <Wordmark />
        {!empty && <SearchBox />}
        <Live />
      </header>
      {empty ? (
        <Start />
      ) : (
        <>
          <Results />
          <main class="sheet">
            {names.value === null && namesError.value !== null && selector.value === '' ? (
              <Problem error={namesError.value} />
            ) : (
              <Sheet />
            )}
          </main>
        </>
      )}
      <Footer />
    </div>
  );
}

function Sheet() {
  return (
    <>
      <Heading />
      <Filters />
      {chartError.value !== null && <Problem error={chartError.value} />}
      {(answer.value !== null || chartError.value === null) && <Chart />}
      <Legend />
    </>
  );
}

function Wordmark() {
  return (
    <a
      class="wordmark"
      href="#/"
      onClick={() => (input.value = '')}
      aria-label="daybook, first page"
    >
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect x="4" y="3" width="24" height="26" rx="5" class="mark-page" />
        <path d="M9 20.5l4.2-6 3.6 4 6.2-9" class="mark-line" />
        <path d="M9 25h14" class="mark-rule" />
      </svg>
      daybook
    </a>
  );
}

function Live() {
  return (
    <button
      type="button"
      class="live"
      aria-pressed={!paused.value}
      title={paused.value ? 'Refresh every 15 s again' : 'Stop refreshing'}
      onClick={() => (paused.value = !paused.value)}
    >
      <span class={paused.value ? 'dot dot-paused' : 'dot'} aria-hidden="true" />
      {paused.value ? 'Paused' : 'Live'}
    </button>
  );
}
