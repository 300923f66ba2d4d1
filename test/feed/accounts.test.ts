/** @lane processes */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { noop, retry, Subject } from 'rxjs';
import { createFeedCluster, memoryEngine } from '../../src/cluster/index.js';
import { callPlace } from '../../src/feed/accounts.js';
import { tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { marketBatches$, startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { itInCi } from '../support/cases.js';
import { until } from '../support/feed.js';
import { runProgram } from '../support/run-program.js';
import { waitFor } from '../support/wait-for.js';

// Programs take long to start on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(120_000);

describe('two feeds of one account', () => {
  let service: TradeFeedService;
  beforeAll(async () => {
    const source = () => marketBatches$({ rate: 100 });
    service = await startTradeFeedService({ sources: { market: source(), raw: source() } });
  });
  afterAll(() => service.shutdown());

  const newKey = () => service.createAccount({ plan: 'developer' }).createApiKey();

  let emitWarning: jest.SpiedFunction<(warning: string, options: NodeJS.EmitWarningOptions) => void>;
  beforeEach(() => {
    emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  });
  afterEach(() => emitWarning.mockRestore());

  const texts = () =>
    emitWarning.mock.calls.map(([text]) => text).filter((text) => text.includes('use the same account'));
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const optionsOf = (more: TradeFeedOptions = {}): TradeFeedOptions => ({
    ...{ baseUrl: service.baseUrl, apiKey: newKey(), backoff: { initialDelayMs: 1, maxDelayMs: 5 } },
    ...more,
  });
  const feed$ = (options: TradeFeedOptions) => tradeFeed$('market', options);

  const placeIn = (file: string, comment: string): string => {
    const lines = readFileSync(join(import.meta.dirname, '../e2e/programs/same-account', file), 'utf8').split('\n');
    const line = lines.findIndex((text) => text.endsWith(`// ${comment}`)) + 1;
    return String.raw`tradeFeed\$\('market'\) at \S*same-account/${file}:${line}:\d+`;
  };

  itInCi('cause one warning of their program, with both places, before one of them ends', async () => {
    const apiKey = newKey();
    const env = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: apiKey };
    const { code, stdout, stderr } = await runProgram('same-account/first.mjs', [], env);
    expect({ code, hasKey: (stdout + stderr).includes(apiKey) }).toEqual({ code: 0, hasKey: false });
    const places = `${placeIn('first.mjs', 'the first place')}, and ${placeIn('second.mjs', 'the second place')}`;
    const text = `Two feeds of this process use the same account: ${places}\\. .*warnings: false`;
    const warning = expect.stringMatching(new RegExp(`^TradeFeedWarning connection-replaced: ${text}`));
    expect(stdout.trim().split('\n')).toEqual([warning, 'ended: connection-replaced']);
    expect(stderr.match(/^\(node:\d+\) \[connection-replaced\] TradeFeedWarning: /gm)).toHaveLength(1);
  });

  it('are compared whether they emit events or frames, with or without a trailing slash', async () => {
    const options = optionsOf();
    const ends = [
      tradeFeedEvents$('raw', options).subscribe({ error: noop }),
      feed$({ ...options, baseUrl: `${service.baseUrl}/` }).subscribe({ error: noop }),
    ];
    await turn();
    expect(texts()).toEqual([
      expect.stringMatching(/tradeFeedEvents\$\('raw'\) at .*, and tradeFeed\$\('market'\) at /),
    ]);
    for (const end of ends) end.unsubscribe();
  });

  it('cause no warning if one has `warnings: false`, if their keys differ, or if one ends at once', async () => {
    const options = optionsOf();
    const subscriptions = [
      feed$(options).subscribe({ error: noop }),
      feed$({ ...options, warnings: false }).subscribe({ error: noop }),
      feed$(optionsOf()).subscribe({ error: noop }),
    ];
    feed$(options).subscribe({ error: noop }).unsubscribe();
    let resolveKey: (key: string) => void = noop;
    const apiKey = () => new Promise<string>((resolve) => (resolveKey = resolve));
    feed$({ ...options, apiKey })
      .subscribe({ error: noop })
      .unsubscribe();
    resolveKey(String(options.apiKey));
    await turn();
    expect(texts()).toEqual([]);
    for (const each of subscriptions) each.unsubscribe();
  });

  it('cause no warning if one is subscribed to by the handler that sees the other end', async () => {
    const options = optionsOf({ apiKey: 'unknown-key' });
    const restarted = new Subject<void>();
    feed$(options).subscribe({
      error: () => feed$(options).subscribe({ error: () => restarted.complete() }),
    });
    await until(restarted, () => false);
    expect(texts()).toEqual([]);
  });

  it('cause one warning, even if `retry` keeps bringing both back', async () => {
    const options = optionsOf();
    const ends = [0, 0];
    const subscriptions = ends.map((_, n) =>
      feed$(options)
        .pipe(retry({ delay: () => [(ends[n]! += 1)] }))
        .subscribe({ error: noop }),
    );
    await waitFor(() => Math.min(...ends) >= 2);
    for (const each of subscriptions) each.unsubscribe();
    const text = /^Two subscriptions of tradeFeed\$\('market'\) at \S+:\d+:\d+ use the same account\. /;
    expect(texts()).toEqual([expect.stringMatching(text)]);
  });

  it('are compared by the last key that a function returned', async () => {
    const account = service.createAccount({ plan: 'developer' });
    const rotated = optionsOf();
    let { apiKey } = optionsOf({ apiKey: account.createApiKey() });
    const openings: unknown[] = [];
    const subscriptions = [
      feed$(rotated).subscribe({ error: noop }),
      tradeFeedEvents$('market', optionsOf({ apiKey: () => String(apiKey) })).subscribe({
        next: ({ type }) => type === 'opened' && openings.push(type),
        error: noop,
      }),
    ];
    await waitFor(() => openings.length === 1);
    expect(texts()).toEqual([]);
    ({ apiKey } = rotated);
    account.expireAccess();
    await waitFor(() => texts().length > 0);
    for (const each of subscriptions) each.unsubscribe();
  });

  it('cause no warning if they are replicas of one cluster', async () => {
    const options = optionsOf();
    const engine = memoryEngine();
    const replica = () => createFeedCluster('market', { ...options, engine, account: 'main' });
    const [one, two] = [replica(), replica()];
    let frames = 0;
    const subscriptions = [one, two].map((each) => each.frames$.subscribe(() => (frames += 1)));
    await waitFor(() => frames > 2);
    const owner = one.status.role === 'owning' ? one : two;
    await owner.handOver();
    await waitFor(() => [one, two].some((each) => each !== owner && each.status.role === 'owning'));
    frames = 0;
    await waitFor(() => frames > 2);
    expect(texts()).toEqual([]);
    const other = feed$(options).subscribe({ error: noop });
    await turn();
    expect(texts()).toEqual([expect.stringMatching(/createFeedCluster\('market'\) at .*, and tradeFeed\$/)]);
    for (const each of [...subscriptions, other]) each.unsubscribe();
  });
});

describe('call place', () => {
  const inside = pathToFileURL(join(process.cwd(), 'src', 'app.js')).href;

  afterEach(() => void jest.restoreAllMocks());

  it.each([
    ['a named function of a module', `at run (${inside}:12:3)`, `${join('src', 'app.js')}:12:3`],
    ['a module', `at ${inside}:4:5`, `${join('src', 'app.js')}:4:5`],
    ['a file outside the working directory', 'at run (/elsewhere/app.js:1:2)', '/elsewhere/app.js:1:2'],
    ['code after an `await`', 'at async /elsewhere/app.js:1:2', '/elsewhere/app.js:1:2'],
    ['native code', 'at Array.map (<anonymous>)', 'an unknown place'],
    ['a stack that is too short', '', 'an unknown place'],
  ])('names the place of %s', (_, line, place) => {
    jest.spyOn(Error, 'captureStackTrace').mockImplementation((trace) => {
      Object.assign(trace, { stack: `Error\n    at first (first.js:1:1)${line && `\n    ${line}`}` });
    });
    expect(callPlace()).toBe(place);
  });
});
