// Follows docs/nestjs.md in a new application of NestJS 11, which uses CommonJS and ts-jest.
import assert from 'node:assert/strict';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFolder, newApp, npmInstall, run, setAside, tarballIn } from './nestjs/app.mjs';
import { packagesToInstall, writeFiles } from './nestjs/guide.mjs';
import { checkStreams } from './nestjs/streams-frames.mjs';

test('NestJS 11', { timeout: 600_000 }, async (t) => {
  const folder = await createFolder(t);
  const tarball = await tarballIn(folder);
  const { app, manifest } = await newApp(folder, 11);
  let addFastify;
  const bin = (name) => join(app, 'node_modules/.bin', name);

  await t.test('installs', async () => {
    delete manifest.jest; // the guide uses a separate file
    await writeFile(join(app, 'package.json'), JSON.stringify(manifest));
    await Promise.all(
      ['app.controller', 'app.controller.spec', 'app.service'].map((name) => rm(join(app, `src/${name}.ts`))),
    );
    await npmInstall(app, packagesToInstall(11, tarball));
    // The application of the guide has no Fastify.
    addFastify = await setAside(app, ['@nestjs/platform-fastify', 'fastify']);
    await writeFiles(app);
  });

  await t.test('compiles with the settings of its template, as CommonJS, without a type error', async () => {
    // One setting differs, so that the declarations of the package are checked against those of NestJS 11.
    const tsconfig = join(app, 'tsconfig.json');
    await writeFile(
      tsconfig,
      (await readFile(tsconfig, 'utf8')).replace('"skipLibCheck": true', '"skipLibCheck": false'),
    );
    await run(bin('nest'), ['build'], app);
    assert.match(await readFile(join(app, 'dist/app.module.js'), 'utf8'), /require\("rx-trade-feed\/nestjs"\)/);
  });

  await t.test('streams frames to its log and to a browser, and stops on SIGTERM', () => checkStreams(app));

  await t.test('passes its test with the CommonJS jest of the guide', async () => {
    assert.match(await run(bin('jest'), ['--ci', '--watchman=false'], app), /Tests: +1 passed, 1 total/);
  });

  await t.test('streams over Express and over Fastify', async () => {
    await addFastify();
    await copyFile(new URL('nestjs/adapter-check.mjs', import.meta.url), join(app, 'adapter-check.mjs'));
    for (const adapter of ['express', 'fastify'])
      assert.match(await run(process.execPath, ['adapter-check.mjs', adapter], app), /passed/);
  });
});
