// Holds the public surface of each entry point against what is committed in etc/: the names that exist at run time
// (public-names.json) and the declarations (<entry>.api.md). `--update` writes both anew. Reads dist: build first.
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const update = process.argv.includes('--update');
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const entries = Object.entries(exports).filter(([, { types }]) => types !== undefined);
const hint = 'If the change is meant: npm run api:update, and commit etc/.';

const namesAgree = async () => {
  const names = {};
  for (const [entry, { default: file }] of entries) {
    names[entry] = Object.keys(await import(pathToFileURL(resolve(file)))).sort();
  }
  const text = `${JSON.stringify(names, null, 2)}\n`;
  const path = 'etc/public-names.json';
  const committed = existsSync(path) ? readFileSync(path, 'utf8') : '{}';
  if (update) writeFileSync(path, text);
  if (update || text === committed) return true;
  const before = JSON.parse(committed);
  for (const entry of new Set([...Object.keys(before), ...Object.keys(names)])) {
    const [was, is] = [before[entry] ?? [], names[entry] ?? []];
    for (const name of is.filter((each) => !was.includes(each))) console.error(`${entry}: ${name} is new.`);
    for (const name of was.filter((each) => !is.includes(each))) console.error(`${entry}: ${name} is gone.`);
  }
  console.error(`The public names are not those of ${path}. ${hint}`);
  return false;
};

const declarationsAgree = ([entry, { types }]) => {
  const quiet = { logLevel: 'none' };
  const config = ExtractorConfig.prepare({
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
        // Release tags are not in use, and typedoc is who checks the links.
        extractorMessageReporting: {
          'ae-missing-release-tag': quiet,
          'ae-unresolved-link': quiet,
          'ae-undocumented': quiet,
        },
      },
    },
  });
  const { succeeded, apiReportChanged } = Extractor.invoke(config, {
    localBuild: update,
    // It says each time which TypeScript it brings along.
    messageCallback: (message) => {
      if (message.messageId.startsWith('console-preamble') || message.messageId === 'console-compiler-version-notice') {
        message.logLevel = 'none';
      }
    },
  });
  if (apiReportChanged && !update) console.error(`The API report of ${entry} is not the committed one. ${hint}`);
  return succeeded;
};

mkdirSync('etc', { recursive: true });
const agreed = [await namesAgree(), ...entries.map(declarationsAgree)];
process.exitCode = agreed.every(Boolean) ? 0 : 1;
