// docs/angular.md in an Angular 20 app, the oldest supported version. New apps of that version use zone.js.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { createApp } from './angular/app.mjs';
import { countingMain, runScenario, typeProof } from './angular/scenario.mjs';

let app;
before(
  async () => {
    app = await createApp('angular-20');
    await app.write('src/main.ts', countingMain(true));
    await app.write('src/type-proof.ts', typeProof);
  },
  { timeout: 600_000 },
);
after(() => app?.remove());

test('the Angular 20 app compiles without the types of Node, and shows frames, an outage, a reload and a stop', async (t) => {
  assert.match(await app.ng('build', '--output-path', 'dist/zone'), /Application bundle generation complete/);
  t.diagnostic(await runScenario(app, 'dist/zone'));
});
