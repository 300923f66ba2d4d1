import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { launchChromium, newPage } from '../support.mjs';
import { createApp, startProgram } from './app.mjs';

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

/** Creates the app of the guide, and builds it with a proof of its types. Returns what the build prints. */
export const buildApp = async (versions) => {
  const app = await createApp(versions);
  await app.write('src/type-proof.ts', typeProof);
  return { app, printed: await app.ng('build', '--output-path', 'dist/built') };
};

/** Opens the guide's app in Chromium. `errors` collects the errors of its console and scripts. */
export const openPage = async () => {
  const browser = await launchChromium();
  const { page, errors } = await newPage(browser);
  // Chromium logs each 503 as an error, and a relay answers 503 once its feed has stopped.
  const isError = (message) => message.type() === 'error' && !/status of 503/.test(message.text());
  page.on('console', (message) => isError(message) && errors.push(message.text()));
  return {
    page,
    errors,
    close: () => browser.close(),
    /** Waits until the status matches a pattern. */
    statusIs: async (pattern) => {
      try {
        await page.getByRole('status').filter({ hasText: pattern }).waitFor();
      } catch (cause) {
        const text = await page.innerText('body');
        throw new Error(`The status does not match ${pattern}. The page contains: ${text}`, { cause });
      }
    },
    /** Waits until the page has received this number of frames (`in all`) or `gaps`. */
    reaches: (what, total) =>
      page.waitForFunction(
        ([what, total]) =>
          Number(new RegExp(`(\\d+) ${what}`).exec(document.querySelector('#figures')?.textContent ?? '')?.[1]) >=
          total,
        [what, total],
      ),
  };
};

/** Shortens the 5 s that a stopped relay asks pages to wait: the page reports it only after several such waits. */
const retrySoon = async (route) => {
  const response = await route.fetch();
  const body = (await response.text()).replace(/"retryAfterMs":\d+/, '"retryAfterMs":1000');
  await route.fulfill({ response, body, headers: { ...response.headers(), 'retry-after': '1' } });
};

/** Opens the built app of the guide in Chromium. Checks frames, an outage, a reload and a stop. */
export const runScenario = async (app) => {
  await app.add('server.mjs');
  const { program, url } = await startProgram(app, 'server.mjs', join(app.folder, 'dist/built/browser'));
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
    await shown.reaches('in all', 10_000);
    const lines = await page.locator('#last li').allInnerTexts();
    assert.equal(lines.length, 20);
    for (const line of lines) assert.match(line, /^\{"n":\d+\}$/);

    const [, gaps] = /(\d+) gaps/.exec(await page.textContent('#figures'));
    await order('begin outage');
    await shown.statusIs(/^No connection since .+can't issue tickets.+Next attempt at /);
    await order('end outage');
    await shown.statusIs(/^Live since /);
    await shown.reaches('gaps', Number(gaps) + 1);

    await page.reload();
    await shown.statusIs(/^Live since /);
    await shown.reaches('in all', 1);
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
  } finally {
    await shown.close();
    await program.stop();
  }
};
