// Writes the generated parts of docs/command-line.md from the commands in src.
//
//   node scripts/site/update-command-line.mjs
import { build } from 'esbuild';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { commandLinePage } from './command-text.mjs';

// In the project, so that the packages of the command are found.
const bundle = resolve('temp/site/commands.mjs');
await build({
  entryPoints: ['src/cli/arguments/commands.ts'],
  outfile: bundle,
  bundle: true,
  format: 'esm',
  packages: 'external',
  logLevel: 'error',
});
const { commands } = await import(pathToFileURL(bundle).href);

const page = 'docs/command-line.md';
writeFileSync(page, commandLinePage(readFileSync(page, 'utf8'), commands));
