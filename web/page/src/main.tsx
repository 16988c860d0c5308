import 'uplot/dist/uPlot.min.css';
import './style.css';

import { render } from 'preact';
import { start } from './load';
import { Page } from './parts/page';
import { startSuggesting } from './suggest';

const root = document.getElementById('page');
if (root !== null) {
  start();
  startSuggesting();
  render(<Page />, root);
}
