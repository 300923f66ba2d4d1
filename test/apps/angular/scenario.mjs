import assert from 'node:assert/strict';
import { join } from 'node:path';
import { contents, openPage } from './page.mjs';
import { serve } from './serve.mjs';

/** Shortens the wait of 5 s that a stopped relay demands, because the page shows the stop only after several of them. */
const retrySoon = async (route) => {
  const response = await route.fetch();
  const body = (await response.text()).replace(/"retryAfterMs":\d+/, '"retryAfterMs":1000');
  await route.fulfill({ response, body, headers: { ...response.headers(), 'retry-after': '1' } });
};

/**
 * Opens a built app of the guide in Chromium, and checks frames, an outage, a reload and a stop.
 *
 * @param dist - the output path of the build, in the folder of the app
 * @returns the number of frames in a part of the test, and the runs of change detection in it
 */
export const runScenario = async (app, dist) => {
  const server = await serve(app, join(app.folder, dist, 'browser'));
  const { page, errors, close } = await openPage();
  const shown = contents(page);
  try {
    await page.goto(server.url);
    await shown.statusIs(/^Live since /);
    await shown.framesReach(1);
    const [framesBefore, rendersBefore] = [await shown.frames(), await shown.renders()];
    await shown.framesReach(framesBefore + 10_000);
    const [frames, renders] = [(await shown.frames()) - framesBefore, (await shown.renders()) - rendersBefore];
    assert.ok(renders >= 2 && renders * 500 < frames, `${renders} runs of change detection for ${frames} frames`);
    const lines = await shown.lines();
    assert.equal(lines.length, 20);
    for (const line of lines) assert.match(line, /^\{"n":\d+\}$/);

    await server.order('begin outage');
    await shown.statusIs(/^No connection since .+cannot issue tickets.+Next attempt at /);
    await server.order('end outage');
    await shown.statusIs(/^Live since /);
    await page.waitForFunction(() => document.querySelector('#figures').textContent.includes('1 gaps'));

    await page.reload();
    await shown.statusIs(/^Live since /);
    await shown.framesReach(1);
    const { resumes } = await server.order('report');
    assert.deepEqual([resumes[0], resumes.length > 1 && !resumes.slice(1).includes('new')], ['new', true]);

    await server.order('take over');
    await page.route('**/feed', retrySoon);
    await shown.statusIs(/^Stopped\. Another connection of the same account took over/);
    const nextRequest = page.waitForRequest(/\/feed$/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await nextRequest;
    await shown.statusIs(/^Stopped\. /);
    assert.deepEqual(errors, []);
    return { frames, renders };
  } finally {
    await close();
    await server.stop();
  }
};
