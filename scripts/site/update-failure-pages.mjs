// Writes the generated parts of docs/failures from the failure tables in src.
//
//   node scripts/site/update-failure-pages.mjs
import { build } from 'esbuild';
import { readFileSync, writeFileSync } from 'node:fs';
import { documentedCodes } from './documented-codes.mjs';
import { failureIndex, failurePage } from './failure-text.mjs';

const contents = `
  export { serviceMeanings } from './service-meanings.js';
  export { relayMeanings, relayReports } from './relay-meanings.js';
  export { workerMeanings } from './worker-meanings.js';
  export { clusterMeanings } from './cluster-meanings.js';
`;
const { outputFiles } = await build({
  stdin: { contents, resolveDir: 'src/protocol/failures', loader: 'ts' },
  bundle: true,
  format: 'esm',
  write: false,
  logLevel: 'error',
});
const source = `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`;
const { serviceMeanings, relayMeanings, relayReports, workerMeanings, clusterMeanings } = await import(source);

const tables = {
  service: serviceMeanings,
  relay: [...relayMeanings, ...Object.values(relayReports)],
  worker: Object.values(workerMeanings),
  cluster: Object.values(clusterMeanings),
};
const update = (name, change) => {
  const file = `docs/failures/${name}.md`;
  writeFileSync(file, change(readFileSync(file, 'utf8')));
};

const all = Object.values(tables).flat();
for (const code of documentedCodes()) update(code, (text) => failurePage(text, code, all));
update('index', (text) => failureIndex(text, tables));
