// Updates every section of docs/reliability.md from reliability/results. Measures nothing.
//
//   node reliability/lib/update-docs.mjs
import { readdirSync, readFileSync } from 'node:fs';
import { folderOf } from '../../bench/lib/root.mjs';
import { intoGuide } from './report.mjs';

const folder = folderOf('reliability/results/');
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const result = JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
  console.log(`${result.name}${await intoGuide(result)}`);
}
