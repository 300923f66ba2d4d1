// docs/angular.md in an Angular 20 app, the oldest supported version. New apps of that version use zone.js.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createCountingApp, runScenario } from './angular/scenario.mjs';

const app = await createCountingApp('angular-20', { isZoned: true });

test('the Angular 20 app compiles without the types of Node, and shows frames, an outage, a reload and a stop', async (t) => {
  assert.match(await app.ng('build', '--output-path', 'dist/zone'), /Application bundle generation complete/);
  t.diagnostic(await runScenario(app, 'dist/zone'));
});
