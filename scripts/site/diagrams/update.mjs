// Draws the diagrams of the operators into docs/diagrams, and writes their texts into its page. Reads dist, so build first.
//
//   node scripts/site/diagrams/update.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { diagrams, runNamed } from './diagrams.mjs';
import { altTextOf, diagramSvg } from './svg.mjs';

const page = 'docs/diagrams/index.md';
const runs = {};
for (const name of Object.keys(diagrams)) runs[name] = await runNamed(name);

for (const [name, run] of Object.entries(runs)) writeFileSync(`docs/diagrams/${name}.svg`, diagramSvg(run));
const text = readFileSync(page, 'utf8');
writeFileSync(
  page,
  text.replaceAll(/^!\[.*\]\((.+)\.svg\)$/gm, (_, name) => `![${altTextOf(runs[name])}](${name}.svg)`),
);
