import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { createApp, startProgram } from './app.mjs';
import { openPage } from './page.mjs';

/** Makes `src/main.ts` count in `renders` how often change detection runs. */
const countingMain = (isZoned) => `
import { afterEveryRender, mergeApplicationConfig, provideAppInitializer${isZoned ? ', provideZoneChangeDetection' : ''} } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { App } from './app/app';
import { appConfig } from './app/app.config';

const page = globalThis as { renders?: number };
page.renders = 0;
const counted = provideAppInitializer(() => {
  afterEveryRender({ read: () => { page.renders = (page.renders ?? 0) + 1; } });
});
const providers = [counted${isZoned ? ', provideZoneChangeDetection()' : ''}];
bootstrapApplication(App, mergeApplicationConfig(appConfig, { providers })).catch((error) => console.error(error));
`;

/** A file that compiles only if the library's types exist and none of them is \`any\`. */
const typeProof = `
import type { AngularTradeFeed } from 'rx-trade-feed/angular';
import type { AnyFrame, Frame, TradeFeedError } from 'rx-trade-feed/browser';
import type { Observable } from 'rxjs';

type Same<A, B> = [A, B, 0 extends 1 & A ? 1 : 2] extends [B, A, 2] ? true : false;
type Emitted<O> = O extends Observable<infer T> ? T : never;
type Is<T extends true> = T;

export type Bytes = Is<Same<Emitted<AngularTradeFeed['frames$']>['data'], Uint8Array>>;
export type InWindow = Is<Same<NonNullable<ReturnType<AngularTradeFeed['window']>>['frames'][number]['data'], Uint8Array>>;
export type Any = Is<Same<AnyFrame['data'], Uint8Array>>;
export type IsFrame = Is<Same<Emitted<AngularTradeFeed['frames$']>, Frame<Uint8Array>>>;
export type Stopped = Is<Same<ReturnType<AngularTradeFeed['failure']>, TradeFeedError | undefined>>;
export type State = Is<Same<ReturnType<AngularTradeFeed['status']>['state'], 'connecting' | 'live' | 'reconnecting' | 'stopped'>>;

export const check = (feed: AngularTradeFeed): void => {
  // @ts-expect-error -- bytes are not a string; with the type \`any\` this would compile
  feed.frames$.subscribe((frame) => frame.data satisfies string);
};
`;

/** Creates the app of the guide. It also counts how often change detection runs, and proves the types. */
export const createCountingApp = async (versions, { isZoned }) => {
  const app = await createApp(versions);
  await app.write('src/main.ts', countingMain(isZoned));
  await app.write('src/type-proof.ts', typeProof);
  return app;
};

/** Shortens the 5 s that a stopped relay asks pages to wait: the page reports it only after several such waits. */
const retrySoon = async (route) => {
  const response = await route.fetch();
  const body = (await response.text()).replace(/"retryAfterMs":\d+/, '"retryAfterMs":1000');
  await route.fulfill({ response, body, headers: { ...response.headers(), 'retry-after': '1' } });
};

/**
 * Opens the built app of the guide in Chromium. Checks frames, an outage, a reload and a stop.
 *
 * @param dist - the output path of the build, in the folder of the app
 * @returns a text about the runs of change detection
 */
export const runScenario = async (app, dist) => {
  await app.add('server.mjs');
  const { program, url } = await startProgram(app, 'server.mjs', join(app.folder, dist, 'browser'));
  const order = async (name) => {
    program.child.send({ order: name });
    const [{ answer }] = await once(program.child, 'message');
    return answer;
  };
  const shown = await openPage();
  const { page } = shown;
  try {
    await page.goto(url);
    await shown.statusIs(/^Live since /);
    await shown.reaches('frames', 1);
    const before = await shown.counts();
    await shown.reaches('frames', before.frames + 10_000);
    const after = await shown.counts();
    const [frames, renders, seconds] = ['frames', 'renders', 'seconds'].map((name) => after[name] - before[name]);
    // Goes by time, because a busy machine sends fewer frames a second.
    const text = `${renders} runs of change detection for ${frames} frames in ${seconds} s`;
    assert.ok(renders >= 2 && renders < 10 * seconds && renders < frames, text);
    const lines = await shown.lines();
    assert.equal(lines.length, 20);
    for (const line of lines) assert.match(line, /^\{"n":\d+\}$/);

    const { gaps } = after;
    await order('begin outage');
    await shown.statusIs(/^No connection since .+can't issue tickets.+Next attempt at /);
    await order('end outage');
    await shown.statusIs(/^Live since /);
    await shown.reaches('gaps', gaps + 1);

    await page.reload();
    await shown.statusIs(/^Live since /);
    await shown.reaches('frames', 1);
    const { resumes } = await order('report');
    assert.deepEqual([resumes[0], resumes.length > 1 && !resumes.slice(1).includes('new')], ['new', true]);

    await order('take over');
    await page.route('**/feed', retrySoon);
    await shown.statusIs(/^Stopped\. Another client connected with this account/);
    const nextRequest = page.waitForRequest(/\/feed$/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await nextRequest;
    await shown.statusIs(/^Stopped\. /);
    assert.deepEqual(shown.errors, []);
    return text;
  } finally {
    await shown.close();
    await program.stop();
  }
};
