// Follows docs/angular.md in an Angular 20 app, the oldest supported version. A new app of that version uses zone.js.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { countingMain, typeProof } from './angular/main.mjs';
import { runScenario } from './angular/scenario.mjs';
import { createApp } from './angular/scratch-app.mjs';

const tools = {
  '@angular/build': '20.3.41',
  '@angular/cli': '20.3.43',
  typescript: '~5.9.2',
  'zone.js': '~0.15.0',
  rxjs: '~7.8.0',
  tslib: '^2.3.0',
};
let app;

before(
  async () => {
    app = await createApp('20.3.32', tools);
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
