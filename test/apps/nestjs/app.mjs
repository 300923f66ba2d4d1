// Creates a NestJS application with its CLI and adds the files of docs/nestjs.md.
import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fencesOf, installPackages, root, run, tarball } from '../support.mjs';

const guide = fencesOf('docs/nestjs.md');

/** The section `jest` of package.json for NestJS 11. */
export const jestSection = () => JSON.parse(guide.find(({ language }) => language === 'json').code);

/** The packages that the guide installs for a version, with a tarball in place of this package. */
const packagesOf = async (version) => {
  const commands = guide.filter(({ language }) => language === 'bash').flatMap(({ code }) => code.split('\n'));
  const [, names] = commands
    .flatMap((line) => [/^npm install (.+?) # (NestJS \d+)$/.exec(line) ?? []])
    .find(([, , label]) => label === `NestJS ${version}`);
  const packed = await tarball();
  return names.split(' ').map((name) => (name === 'rx-trade-feed' ? packed : name));
};

const isInstalled = (name) => !/lint|prettier|supertest|globals|coverage|mau/.test(name);
const readJson = async (file) => JSON.parse(await readFile(file, 'utf8'));

/**
 * Creates an application with the CLI of a version of NestJS and follows the guide. Installs the guide's packages once,
 * with the lockfile in `test/apps`, for the CLI, the application and all its tests. Leaves out linters and formatters.
 *
 * @param version - 11 or 12
 * @param section - what the guide adds to package.json
 * @returns the folder of the application, and `addFastify`, which installs Fastify: the application of the guide has none
 */
export const createApp = async (folder, version, section) => {
  const locked = join(root, `test/apps/nestjs-${version}`);
  const files = ['package.json', 'package-lock.json'];
  for (const file of files) await copyFile(join(locked, file), join(folder, file));
  await installPackages(folder, await packagesOf(version));
  const nest = join(folder, 'node_modules/.bin/nest');
  await run(nest, ['new', 'app', '--skip-install', '--skip-git', '--package-manager', 'npm'], { cwd: folder });
  const app = join(folder, 'app');
  await rename(join(folder, 'node_modules'), join(app, 'node_modules'));
  // A test of the guides formats by these rules.
  assert.deepEqual(await readJson(join(app, '.prettierrc')), { singleQuote: true, trailingComma: 'all' });
  const { dependencies } = await readJson(join(folder, 'package.json'));
  for (const file of files) await rm(join(folder, file));
  const manifest = await readJson(join(app, 'package.json'));
  const required = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }).filter(isInstalled);
  const missing = required.filter((name) => !Object.hasOwn(dependencies, name));
  assert.deepEqual(missing, [], `${locked}/package.json lacks packages of the template`);

  await writeFile(
    join(app, 'package.json'),
    JSON.stringify({ ...manifest, dependencies, devDependencies: {}, ...section }),
  );
  for (const { path, code } of guide) {
    if (path === undefined) continue;
    await mkdir(dirname(join(app, path)), { recursive: true });
    await writeFile(join(app, path), code);
  }
  const moves = ['@nestjs/platform-fastify', 'fastify'].map((name) => [
    join(app, 'node_modules', name),
    join(folder, name.replace('/', '-')),
  ]);
  for (const [from, to] of moves) await rename(from, to);
  return { app, addFastify: () => Promise.all(moves.map(([from, to]) => rename(to, from))) };
};
