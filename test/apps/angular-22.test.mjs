// Follows docs/angular.md in an Angular 22 app: zoneless, in Chromium, and on a server.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { countingMain, typeProof } from './angular/main.mjs';
import { contents, openPage } from './angular/page.mjs';
import { runScenario } from './angular/scenario.mjs';
import { createApp } from './angular/scratch-app.mjs';
import { startProgram, stopProgram } from './angular/serve.mjs';

let app;

before(
  async () => {
    app = await createApp('angular-22');
    await app.write('src/main.ts', countingMain(false));
    await app.write('src/main.zone.ts', countingMain(true));
    await app.write('src/type-proof.ts', typeProof);
  },
  { timeout: 300_000 },
);
after(() => app?.remove());

test('compiles, without types of Node', async () => {
  const { stdout } = await app.ng('build', '--output-path', 'dist/zoneless');
  assert.match(stdout, /Application bundle generation complete/);
  assert.doesNotMatch(stdout, /WARNING/);
});

test('shows frames, an outage, a reload and a stop', async (t) => {
  const { frames, renders } = await runScenario(app, 'dist/zoneless');
  t.diagnostic(`zoneless: ${renders} runs of change detection for ${frames} frames`);
});

test('works the same with zone.js', async (t) => {
  await app.ng('build', '--browser', 'src/main.zone.ts', '--polyfills', 'zone.js', '--output-path', 'dist/zone');
  const { frames, renders } = await runScenario(app, 'dist/zone');
  t.diagnostic(`zone.js: ${renders} runs of change detection for ${frames} frames`);
});

test('renders on a server without a request', async (t) => {
  await copyFile(join(import.meta.dirname, 'angular/ssr.mjs'), join(app.folder, 'ssr.mjs'));
  const { stdout } = await app.run('ssr.mjs');
  const { html, requests, ms } = JSON.parse(stdout.trim().split('\n').at(-1));
  assert.match(html, /<p role="status">Connecting\.<\/p>/);
  assert.deepEqual(requests, []);
  t.diagnostic(`rendered in ${ms} ms`);
});

test('the development server shows the frames of the relay of the guide', async () => {
  const [port, target] = ["listen(3000, '127.0.0.1')", 'http://127.0.0.1:3000'];
  const [relay, proxy] = [await app.read('relay.mjs'), await app.read('proxy.conf.json')];
  assert.ok(relay.includes(port) && proxy.includes(target));
  // Uses a free port, and sends it to this process. The rest is unchanged.
  const freePort = "listen(0, '127.0.0.1', function () { process.send({ port: this.address().port }); })";
  await app.write('relay.mjs', relay.replace(port, freePort));
  const { program, url } = await startProgram(app, 'relay.mjs');
  await app.write('proxy.conf.json', proxy.replace(target, url));
  const ng = 'node_modules/@angular/cli/bin/ng.js';
  const { page, errors, close } = await openPage();
  const development = app.spawn(ng, 'serve', '--port', '0', '--proxy-config', 'proxy.conf.json');
  try {
    const address = await waitForOutput(development, /http:\/\/localhost:\d+/);
    await page.goto(address);
    await contents(page).statusIs(/^Live since /);
    await contents(page).framesReach(1);
    assert.deepEqual(errors, []);
  } finally {
    await Promise.all([close(), stopProgram(development), stopProgram(program)]);
  }
});

/** Waits until a program has printed a pattern. It keeps reading, because the program fails if its pipe is closed. */
const waitForOutput = (program, pattern) =>
  new Promise((resolve, reject) => {
    let text = '';
    program.stdout.setEncoding('utf8').on('data', (part) => {
      text += part;
      const [found] = pattern.exec(text) ?? [];
      if (found !== undefined) resolve(found);
    });
    program.once('exit', () => reject(new Error(`The program exited without ${pattern}:\n${text}${program.errors}`)));
  });
