// Writes the goals of a cluster into docs/reliability.md. Run it after `npm run reliability -- cluster` and `npm run bench -- cluster`.
//
//   node scripts/site/update-cluster-goals.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { withClusterGoals } from './cluster-goals.mjs';

const page = 'docs/reliability.md';
writeFileSync(page, withClusterGoals(readFileSync(page, 'utf8')));
