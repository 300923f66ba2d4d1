// Creates a NestJS application with its CLI and adds the files of docs/nestjs.md.
import assert from 'node:assert/strict';
import { readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fencesOf, installLocked, run, writeFiles } from '../support.mjs';

const guide = fencesOf('docs/nestjs.md');

/** The section `jest` of package.json for NestJS 11. */
export const jestSection = () => JSON.parse(guide.find(({ language }) => language === 'json').code);

/** The packages that the guide installs for a version. */
const packagesOf = (version) => {
  const commands = guide.filter(({ language }) => language === 'bash').flatMap(({ code }) => code.split('\n'));
  const [, names] = commands
    .flatMap((line) => [/^npm install (.+?) # (NestJS \d+)$/.exec(line) ?? []])
    .find(([, , label]) => label === `NestJS ${version}`);
  return names.split(' ');
};

const isInstalled = (name) => !/lint|prettier|supertest|globals|coverage|mau/.test(name);
const readJson = async (file) => JSON.parse(await readFile(file, 'utf8'));

/**
 * Creates an application with the CLI of a version of NestJS and follows the guide, which adds `section` to package.json. Installs the packages once,
 * for the CLI, the application and all its tests. Leaves out linters and formatters. The application has no Fastify until `addFastify`.
 */
export const createApp = async (folder, version, section) => {
  const locked = `nestjs-${version}`;
  await installLocked(folder, locked, packagesOf(version));
  const nest = join(folder, 'node_modules/.bin/nest');
  await run(nest, ['new', 'app', '--skip-install', '--skip-git', '--package-manager', 'npm'], { cwd: folder });
  const app = join(folder, 'app');
  await rename(join(folder, 'node_modules'), join(app, 'node_modules'));
  // A test of the guides formats by these rules.
  assert.deepEqual(await readJson(join(app, '.prettierrc')), { singleQuote: true, trailingComma: 'all' });
  const { dependencies } = await readJson(join(folder, 'package.json'));
  for (const file of ['package.json', 'package-lock.json']) await rm(join(folder, file));
  const manifest = await readJson(join(app, 'package.json'));
  const required = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }).filter(isInstalled);
  const missing = required.filter((name) => !Object.hasOwn(dependencies, name));
  assert.deepEqual(missing, [], `${locked}/package.json lacks packages of the template`);

  const filesOfGuide = guide.flatMap(({ path, code }) => (path === undefined ? [] : [[path, code]]));
  const changed = JSON.stringify({ ...manifest, dependencies, devDependencies: {}, ...section });
  writeFiles(app, [['package.json', changed], ...filesOfGuide]);
  const moves = ['@nestjs/platform-fastify', 'fastify'].map((name) => [
    join(app, 'node_modules', name),
    join(folder, name.replace('/', '-')),
  ]);
  for (const [from, to] of moves) await rename(from, to);
  return { app, addFastify: () => Promise.all(moves.map(([from, to]) => rename(to, from))) };
};
