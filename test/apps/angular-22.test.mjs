// docs/angular.md in an Angular 22 app, which is zoneless: in a page, and on the development server. The app of Angular 20 has zone.js.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { startProgram } from './angular/app.mjs';
import { buildApp, openPage, runScenario } from './angular/scenario.mjs';

const { app, printed } = await buildApp('angular-22');

test('the Angular 22 app compiles without the types of Node, and shows frames, an outage, a reload and a stop', async () => {
  assert.match(printed, /Application bundle generation complete/);
  assert.doesNotMatch(printed, /WARNING/);
  await runScenario(app);
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
    await shown.reaches('in all', 1);
    assert.deepEqual(shown.errors, []);
  } finally {
    await Promise.all([shown.close(), development.stop(), program.stop()]);
  }
});
