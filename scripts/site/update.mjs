// Writes the generated parts of the documentation. Tests compare them with the library.
//
//   node scripts/site/update.mjs failures         docs/failures, from the failure tables in src
//   node scripts/site/update.mjs command-line     docs/command-line.md, from the commands in src
//   node scripts/site/update.mjs limits           docs/limits.md, from the defaults and the comments of the options in src
//   node scripts/site/update.mjs diagrams         docs/diagrams and the texts of these images in docs/operators.md and docs/outcomes.md; reads dist, so build first
import { build } from 'esbuild';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { commandLinePage } from './command-text.mjs';
import { limitSources, limitsPage } from './limits.mjs';
import { failureIndex, failurePage, failurePageNames } from './failure-text.mjs';

const update = (file, change) => writeFileSync(file, change(readFileSync(file, 'utf8')));

/** Imports names from files of src. */
const fromSource = async (exports) => {
  // In the project, so that packages are found.
  const outfile = resolve('temp/site/source.mjs');
  const contents = Object.entries(exports).map(([file, names]) => `export { ${names} } from './src/${file}';`);
  const stdin = { contents: contents.join('\n'), resolveDir: '.', loader: 'ts' };
  await build({ stdin, outfile, bundle: true, format: 'esm', packages: 'external', logLevel: 'error' });
  // The query makes each a separate module.
  return import(`${pathToFileURL(outfile).href}?${Object.keys(exports)}`);
};

const parts = {
  failures: async () => {
    const { serviceMeanings, relayMeanings, notLoaded, ...of } = await fromSource({
      'protocol/failures/classify.ts': 'clusterMeanings, serviceMeanings',
      'protocol/failures/meanings.ts': 'relayReports',
      'browser/relay-error.ts': 'relayMeanings',
      'log/log-error.ts': 'logErrors, logMeanings',
      'worker/feed-in-worker.ts': 'workerMeanings',
      'transport/network-clients.ts': 'notLoaded',
    });
    const tables = [of.relayReports, of.clusterMeanings, of.logMeanings, of.logErrors, of.workerMeanings];
    const all = [...serviceMeanings, ...relayMeanings, ...tables.flatMap(Object.values), notLoaded];
    for (const name of failurePageNames) update(`docs/failures/${name}.md`, (text) => failurePage(text, name, all));
    update('docs/failures/index.md', (text) => failureIndex(text, all));
  },
  'command-line': async () => {
    const { exitCodeRows, loadCommands } = await fromSource({
      'cli/errors.ts': 'exitCodeRows',
      'cli/program.ts': 'loadCommands',
    });
    const commands = await loadCommands();
    update('docs/command-line.md', (text) => commandLinePage(text, commands, exitCodeRows));
  },
  limits: async () => {
    const source = await fromSource(limitSources);
    update('docs/limits.md', (text) => limitsPage(text, source));
  },
  diagrams: async () => {
    const { diagrams, runNamed } = await import('./diagrams/diagrams.mjs');
    const { altTextOf, diagramSvg } = await import('./diagrams/svg.mjs');
    const runs = {};
    for (const name of Object.keys(diagrams)) runs[name] = await runNamed(name);
    for (const [name, run] of Object.entries(runs)) writeFileSync(`docs/diagrams/${name}.svg`, diagramSvg(run));
    for (const page of ['docs/operators.md', 'docs/outcomes.md'])
      update(page, (text) =>
        text.replaceAll(
          /^!\[.*\]\((diagrams\/(.+)\.svg)\)$/gm,
          (_, file, name) => `![${altTextOf(runs[name])}](${file})`,
        ),
      );
  },
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0 || names.length === 0)
  throw new Error(
    `Unknown: ${unknown.join(', ') || 'nothing is named'}. The parts are ${Object.keys(parts).join(', ')}.`,
  );
for (const name of names) await parts[name]();
