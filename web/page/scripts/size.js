// Fails when what a browser loads first (index.html and all it names) is over the budget, gzipped.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const budget = 60 * 1024;
const dist = new URL('../dist/', import.meta.url);
const html = readFileSync(new URL('index.html', dist), 'utf8');
const named = [...html.matchAll(/(?:src|href)="\/([^"]+)"/g)].map((m) => m[1]);

let total = 0;
for (const file of ['index.html', ...new Set(named)]) {
  const bytes = gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length;
  total += bytes;
  console.log(`${String(bytes).padStart(7)}  ${file}`);
}
console.log(`${String(total).padStart(7)}  first load, gzipped (budget ${budget})`);

if (named.length === 0 || total > budget) {
  console.error(named.length === 0 ? 'no assets found in index.html' : 'over the budget');
  process.exit(1);
}
