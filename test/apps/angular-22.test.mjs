// docs/angular.md in an Angular 22 app, which is zoneless: in a page, on a server, and on the development server. The app of Angular 20 has zone.js.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { startProgram } from './angular/app.mjs';
import { openPage } from './angular/page.mjs';
import { createCountingApp, runScenario } from './angular/scenario.mjs';

const app = await createCountingApp('angular-22', { isZoned: false });

test('the Angular 22 app compiles without the types of Node, and shows frames, an outage, a reload and a stop', async (t) => {
  const output = await app.ng('build', '--output-path', 'dist/zoneless');
  assert.match(output, /Application bundle generation complete/);
  assert.doesNotMatch(output, /WARNING/);
  t.diagnostic(`zoneless: ${await runScenario(app, 'dist/zoneless')}`);
});

test('the Angular 22 app renders on a server without sending a request', async () => {
  await app.add('ssr.mjs');
  const { html, requests } = JSON.parse(/^\{"html".*$/m.exec(await app.node('ssr.mjs'))[0]);
  assert.match(html, /<p role="status">Connecting\.<\/p>/);
  assert.deepEqual(requests, []);
});

test('the development server of Angular 22 shows the frames of the relay in the guide', async () => {
  const [port, target] = ["listen(3000, '127.0.0.1')", 'http://127.0.0.1:3000'];
  const [relay, proxy] = [await app.read('relay.mjs'), await app.read('proxy.conf.json')];
  assert.ok(relay.includes(port) && proxy.includes(target));
  // Uses a free port and reports it to this process. The rest is unchanged.
  const freePort = "listen(0, '127.0.0.1', function () { process.send({ port: this.address().port }); })";
  await app.write('relay.mjs', relay.replace(port, freePort));
  const { program, url } = await startProgram(app, 'relay.mjs');
  await app.write('proxy.conf.json', proxy.replace(target, url));
  const shown = await openPage();
  const ng = 'node_modules/@angular/cli/bin/ng.js';
  const development = app.start(ng, 'serve', '--port', '0', '--proxy-config', 'proxy.conf.json');
  try {
    const [address] = await development.printed(/http:\/\/localhost:\d+(?=\D)/);
    await shown.page.goto(address);
    await shown.statusIs(/^Live since /);
    await shown.reaches('frames', 1);
    assert.deepEqual(shown.errors, []);
  } finally {
    await Promise.all([shown.close(), development.stop(), program.stop()]);
  }
});
