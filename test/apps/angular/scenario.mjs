import assert from 'node:assert/strict';
import { join } from 'node:path';
import { contents, openPage } from './page.mjs';
import { serve } from './serve.mjs';

/**
 * Opens a built app of the guide in Chromium, and takes it through frames, an outage, a reload and a stop.
 *
 * @param dist - the output path of the build, in the folder of the app
 * @returns how many frames came in a while, and how often change detection ran for them
 */
export const scenario = async (app, dist) => {
  const server = await serve(app, join(app.folder, dist, 'browser'));
  const { page, errors, close } = await openPage();
  const shown = contents(page);
  try {
    await page.goto(server.url);
    await shown.says(/^Live since /);
    await shown.framesReach(1);
    const [framesBefore, rendersBefore] = [await shown.frames(), await shown.renders()];
    await shown.framesReach(framesBefore + 10_000);
    const [frames, renders] = [(await shown.frames()) - framesBefore, (await shown.renders()) - rendersBefore];
    assert.ok(renders >= 2 && renders * 500 < frames, `${renders} runs of change detection for ${frames} frames`);
    const lines = await shown.lines();
    assert.equal(lines.length, 20);
    for (const line of lines) assert.match(line, /^\{"n":\d+\}$/);

    await server.tell('begin outage');
    await shown.says(/^No connection since .+cannot issue tickets.+Next attempt at /);
    await server.tell('end outage');
    await shown.says(/^Live since /);
    await page.waitForFunction(() => document.querySelector('#figures').textContent.includes('1 gaps'));

    await page.reload();
    await shown.says(/^Live since /);
    await shown.framesReach(1);
    const { resumes } = await server.tell('tell');
    assert.deepEqual([resumes[0], resumes.length > 1 && !resumes.slice(1).includes('new')], ['new', true]);

    await server.tell('take over');
    await shown.says(/^Stopped\. Another connection of the same account took over/);
    const asksAgain = page.waitForRequest(/\/feed$/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await asksAgain;
    await shown.says(/^Stopped\. /);
    assert.deepEqual(errors, []);
    return { frames, renders };
  } finally {
    await close();
    await server.stop();
  }
};
