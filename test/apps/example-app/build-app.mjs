// Builds the example app in a separate folder, with the packed library.
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { newerNode, tarball, temporaryFolder } from '../support.mjs';

const execute = promisify(execFile);

/** Runs a command to its end. When it fails, the error contains its output. */
const run = async (command, args, options) => {
  try {
    return await execute(command, args, options);
  } catch ({ stdout, stderr }) {
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`);
  }
};
const source = resolve(import.meta.dirname, '../../../examples/nestjs-angular');
const skipped = new Set(['node_modules', 'dist'].map((name) => join(source, name)));

/**
 * Copies the app, installs it with the packed library instead of the checkout, and builds it. `npm run test:apps` does this once for all
 * tests, and passes the folder in the environment.
 */
export const buildApp = async () => {
  const node = newerNode();
  const env = { ...process.env, PATH: `${node}${delimiter}${process.env.PATH}`, NO_COLOR: '1' };
  const built = (folder) => ({ folder, node: join(node, 'node'), env });
  const existing = process.env.RX_TRADE_FEED_EXAMPLE;
  if (existing) return built(existing);
  // CI runs several commands with the same app.
  const folder = process.env.RX_TRADE_FEED_EXAMPLE_IN ?? temporaryFolder('rx-trade-feed-example-');
  cpSync(source, folder, { recursive: true, filter: (path) => !skipped.has(path) });
  const packageFile = join(folder, 'package.json');
  const manifest = JSON.parse(readFileSync(packageFile, 'utf8'));
  manifest.dependencies['rx-trade-feed'] = `file:${tarball()}`;
  writeFileSync(packageFile, JSON.stringify(manifest));
  const options = { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 };
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline'], options);
  await run('npm', ['run', 'build'], options);
  return built(folder);
};
