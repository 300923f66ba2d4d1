// Compares the public surface of each entry point with the files in etc/: the exported names (public-names.json) and the
// declarations (<entry>.api.md). `--update` overwrites both. Reads dist: build first.
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
const hint = 'If you want this change, run `npm run api -- --update` and commit etc/.';

const checkNames = async () => {
  const names = {};
  for (const [entry, { default: file }] of entries) {
    names[entry] = Object.keys(await import(pathToFileURL(resolve(file)))).sort();
  }
  const text = `${JSON.stringify(names, null, 2)}\n`;
  const path = 'etc/public-names.json';
  const committed = existsSync(path) ? readFileSync(path, 'utf8') : '{}';
  if (update) writeFileSync(path, text);
  if (update || text === committed) return true;
  const [before, after] = [JSON.parse(committed), names].map((each) =>
    Object.entries(each).flatMap(([entry, exported]) => exported.map((name) => `${entry}: ${name}`)),
  );
  for (const name of after.filter((each) => !before.includes(each))) console.error(`${name} was added.`);
  for (const name of before.filter((each) => !after.includes(each))) console.error(`${name} was removed.`);
  console.error(`The public names differ from ${path}. ${hint}`);
  return false;
};

const configOf = ([entry, { types }]) => {
  const quiet = { logLevel: 'none' };
  return ExtractorConfig.prepare({
    configObjectFullPath: resolve('package.json'),
    packageJsonFullPath: resolve('package.json'),
    configObject: {
      projectFolder: resolve('.'),
      mainEntryPointFilePath: resolve(types),
      compiler: { tsconfigFilePath: resolve('tsconfig.build.json') },
      apiReport: {
        enabled: true,
        reportFileName: entry === '.' ? 'index' : entry.slice(2).replaceAll('/', '-'),
        reportFolder: resolve('etc'),
        reportTempFolder: resolve('temp'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        // We use no release tags, and typedoc checks the links.
        extractorMessageReporting: {
          'ae-missing-release-tag': quiet,
          'ae-unresolved-link': quiet,
          'ae-undocumented': quiet,
        },
      },
    },
  });
};

const checkDeclarations = ([entry, config], compilerState) => {
  const { succeeded, apiReportChanged } = Extractor.invoke(config, {
    compilerState,
    localBuild: update,
    // Without this api-extractor prints the version of TypeScript that it uses.
    messageCallback: (message) => {
      if (message.messageId.startsWith('console-preamble') || message.messageId === 'console-compiler-version-notice') {
        message.logLevel = 'none';
      }
    },
  });
  if (apiReportChanged && !update) console.error(`The API report of ${entry} differs from the committed file. ${hint}`);
  return succeeded;
};

mkdirSync('etc', { recursive: true });
const configs = entries.map((entry) => [entry[0], configOf(entry)]);
// One program for all entry points: they share most files.
const compilerState = CompilerState.create(configs[0][1], {
  additionalEntryPoints: configs.map(([, config]) => config.mainEntryPointFilePath),
});
const results = [await checkNames(), ...configs.map((each) => checkDeclarations(each, compilerState))];
process.exitCode = results.every(Boolean) ? 0 : 1;
