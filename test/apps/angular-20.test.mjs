// docs/angular.md in an Angular 20 app, the oldest supported version. New apps of that version use zone.js.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { buildApp, runScenario } from './angular/scenario.mjs';

const { app, printed } = await buildApp('angular-20');

test('the Angular 20 app compiles without the types of Node, and shows frames, an outage, a reload and a stop', async () => {
  assert.match(printed, /Application bundle generation complete/);
  await runScenario(app);
});
