// Compares the public surface of each entry point with the files in etc/: the exported names (public-names.json) and the declarations
// (<entry>.api.md). `--update` overwrites both. Reads dist: build first.
//
//   npm run api
//   npm run api -- --update
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const update = process.argv.includes('--update');
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const entries = Object.entries(exports).filter(([, { types }]) => types !== undefined);
mkdirSync('etc', { recursive: true });

const report = (text) => {
  console.error(`${text} If you want this change, run \`npm run api -- --update\` and commit etc/.`);
  process.exitCode = 1;
};

const names = {};
for (const [entry, { default: file }] of entries)
  names[entry] = Object.keys(await import(pathToFileURL(resolve(file)))).sort();
const path = 'etc/public-names.json';
if (update) writeFileSync(path, `${JSON.stringify(names, null, 2)}\n`);
const committed = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
const linesOf = (all) => Object.entries(all).flatMap(([entry, of]) => of.map((name) => `${entry}: ${name}`));
const [before, after] = [committed, names].map((all) => new Set(linesOf(all)));
for (const name of after) if (!before.has(name)) report(`${name} was added.`);
for (const name of before) if (!after.has(name)) report(`${name} was removed.`);

const quiet = { logLevel: 'none' };
const configOf = ([entry, { types }]) => {
  const apiReport = {
    ...{ enabled: true, reportFileName: entry === '.' ? 'index' : entry.slice(2).replaceAll('/', '-') },
    ...{ reportFolder: resolve('etc'), reportTempFolder: resolve('temp') },
  };
  const off = { enabled: false };
  // We use no release tags, and typedoc checks the links.
  const ignored = ['ae-missing-release-tag', 'ae-unresolved-link', 'ae-undocumented'];
  const messages = { extractorMessageReporting: Object.fromEntries(ignored.map((id) => [id, quiet])) };
  const configObject = {
    ...{ projectFolder: resolve('.'), mainEntryPointFilePath: resolve(types), apiReport, messages },
    ...{
      compiler: { tsconfigFilePath: resolve('tsconfig.build.json') },
      docModel: off,
      dtsRollup: off,
      tsdocMetadata: off,
    },
  };
  const manifest = resolve('package.json');
  return ExtractorConfig.prepare({ configObjectFullPath: manifest, packageJsonFullPath: manifest, configObject });
};

const configs = entries.map(configOf);
// One program for all entry points: they share most files.
const compilerState = CompilerState.create(configs[0], {
  additionalEntryPoints: configs.map(({ mainEntryPointFilePath }) => mainEntryPointFilePath),
});
// Without this api-extractor prints the version of TypeScript that it uses.
const isNoise = (id) => id.startsWith('console-preamble') || id === 'console-compiler-version-notice';
const messageCallback = (message) => isNoise(message.messageId) && Object.assign(message, quiet);
for (const config of configs) {
  const { succeeded, apiReportChanged } = Extractor.invoke(config, {
    compilerState,
    localBuild: update,
    messageCallback,
  });
  if (apiReportChanged && !update) report(`${config.reportFilePath} differs.`);
  else if (!succeeded) process.exitCode = 1;
}
