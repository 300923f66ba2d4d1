// Follows docs/angular.md in an Angular 20 app, the oldest supported version. A new app of that version uses zone.js.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { countingMain, typeProof } from './angular/main.mjs';
import { runScenario } from './angular/scenario.mjs';
import { createApp } from './angular/scratch-app.mjs';

let app;

before(
  async () => {
    app = await createApp('angular-20');
    await app.write('src/main.ts', countingMain(true));
    await app.write('src/type-proof.ts', typeProof);
  },
  { timeout: 300_000 },
);
after(() => app?.remove());

test('compiles, without types of Node', async () => {
  const { stdout } = await app.ng('build', '--output-path', 'dist/zone');
  assert.match(stdout, /Application bundle generation complete/);
});

test('shows frames, an outage, a reload and a stop', async (t) => {
  const { frames, renders } = await runScenario(app, 'dist/zone');
  t.diagnostic(`${renders} runs of change detection for ${frames} frames`);
});
