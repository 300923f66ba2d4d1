import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject } from '@nestjs/common';
import fc from 'fast-check';
import { NEVER, type Observable } from 'rxjs';
import { TradeFeedHealthIndicator, TradeFeedModule } from '../../src/nestjs/index.js';
import { stoppedBy } from '../../src/operators/connection-status.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { serviceMeanings } from '../../src/protocol/failures/classify.js';
import {
  copyFailure,
  createFailure,
  type FailureFacts,
  readFailure,
  TradeFeedError,
} from '../../src/protocol/failures/trade-feed-error.js';
import { relayMeanings } from '../../src/browser/relay-error.js';
import { type Meaning, relayReports } from '../../src/protocol/failures/meanings.js';
import { notLoaded } from '../../src/transport/network-clients.js';
import { fromCloneable, toCloneable } from '../../src/worker/errors.js';
import { workerMeanings } from '../../src/worker/feed-in-worker.js';
import { atEnd, serveFeed } from '../browser/support.js';
import { FeedController, openSse, startApp, when } from '../nestjs/support.js';
import { frame, Raw, Source, type Web } from '../relay/support.js';
import { cases } from '../support/cases.js';
import { optionsFor } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import { startWire } from '../support/wire.js';

/** A part of every text that only the log may contain. */
const mark = 'hvs.private';
const vault = `GET https://vault.corp.example/v1/kv: 403, token ${mark}, from 10.1.2.3:8200`;
const isPrivate = /hvs\.|vault|10\.1\.2\.3/;

const rows: readonly Meaning[] = [
  ...serviceMeanings,
  ...relayMeanings,
  ...Object.values(relayReports),
  ...Object.values(workerMeanings),
  notLoaded,
];

/** A failure of any code and origin, with private text in every field that can hold text. */
const anyFailure = (): fc.Arbitrary<TradeFeedError> => {
  const texts = fc.constantFrom(vault, mark, `\n${vault}\n`, `"${mark}"`);
  const made = fc.record({
    row: fc.constantFrom(...rows),
    origin: fc.constantFrom<keyof typeof origins>('table', 'advice', 'own', 'fields', 'worker', 'log'),
    words: texts,
    status: fc.option(fc.constantFrom(401, 503), { nil: undefined }),
  });
  const one = made.map(({ row, origin, words, status }) => {
    const cause = Object.assign(new Error(words), { address: words });
    const stage = row.stage ?? 'stream';
    const facts: FailureFacts = { stage, reason: words, detail: words, status, endedAt: 5, cause };
    return origins[origin](createFailure(row, facts), words);
  });
  return fc
    .tuple(one, fc.option(one, { nil: undefined }))
    .map(([failure, previous]) => copyFailure(failure, { verdict: failure.verdict, previous }));
};

const origins = {
  table: (failure: TradeFeedError) => failure,
  advice: (failure: TradeFeedError, advice: string) => copyFailure(failure, { advice }),
  own: ({ code, stage, verdict }: TradeFeedError, words: string) =>
    new TradeFeedError({ code, stage, verdict, summary: words, advice: words, reason: words, cause: words }),
  fields: (failure: TradeFeedError, words: string) => Object.assign(failure, { host: words, config: { key: words } }),
  worker: (failure: TradeFeedError) =>
    fromCloneable(structuredClone(toCloneable(failure)), new Map()) as TradeFeedError,
  log: (failure: TradeFeedError) => readFailure(JSON.parse(JSON.stringify(failure))),
} as const;

const eventsOf = (failure: TradeFeedError): readonly RelayedEvent[] => [
  { type: 'opened', at: 1, feed: 'market', connection: 1 },
  frame('one', 2),
  { type: 'disconnected', at: 5, failure },
  { type: 'reconnecting', at: 5, delayMs: 1, attempt: 1, verdict: 'backoff' },
  { type: 'opened', at: 6, feed: 'market', connection: 2 },
  { type: 'gap', from: 5, to: 6, durationMs: 1, failure },
  frame('two', 7),
  { type: 'stopped', at: 8, failure },
];

const relayed = async (source: Observable<RelayedEvent>): Promise<Web> =>
  (await serveFeed(source, { lingerMs: 0 })).web;

/** Reads the bytes that a page receives until they contain a text. */
const bytesUntil = async (web: Web, awaited: string): Promise<string> => {
  const raw = await Raw.get(web.port);
  atEnd(() => raw.socket.destroy());
  return raw.until((all) => all.includes(awaited));
};

describe('a page receives only the fixed texts of the library', () => {
  it('for a random failure in every event and at the end of the stream, early or late', async () => {
    await fc.assert(
      fc.asyncProperty(anyFailure(), async (failure) => {
        const source = new Source();
        const web = await relayed(source.events$);
        const early = bytesUntil(web, 'event: connect-again');
        await waitFor(() => source.active > 0);
        source.emit(...eventsOf(failure));
        source.subject.error(failure);
        for (const bytes of [await early, await bytesUntil(web, 'event: connect-again')]) {
          expect(bytes).not.toMatch(isPrivate);
          expect(bytes).toContain(`"code":"${failure.code}"`);
          expect(bytes).toContain(JSON.stringify(failure.toPublic().message));
        }
      }),
      { numRuns: cases(60) },
    );
  });

  it.each([new Error(vault), vault, { message: vault }, [vault]])(
    'of an error that is not a TradeFeedError: %#',
    async (failure) => {
      const source = new Source();
      const web = await relayed(source.events$);
      const bytes = bytesUntil(web, 'event: connect-again');
      await waitFor(() => source.active > 0);
      source.emit(frame('one'), { type: 'disconnected', at: 1, failure: failure as TradeFeedError });
      source.subject.error(failure);
      expect(await bytes).not.toMatch(isPrivate);
      expect(await bytes).toContain('"code":"relay-source-failed"');
      const health = new TradeFeedHealthIndicator({ status: stoppedBy(failure) }).isHealthy();
      expect(JSON.stringify(health)).not.toMatch(isPrivate);
    },
  );
});

@Controller()
class AppController extends FeedController {
  @Inject(TradeFeedHealthIndicator) readonly indicator!: TradeFeedHealthIndicator;
  @Get('health')
  health() {
    return this.indicator.isHealthy();
  }
}

it('errors of an `apiKey` function, and addresses, are only in the log of NestJS, not in pages or the health', async () => {
  await using wire = await startWire();
  const apiKey = () => Promise.reject(new Error(vault));
  const { app, url, log } = await startApp({
    imports: [TradeFeedModule.forRoot({ ...optionsFor(wire, { apiKey }), relay: { batchMs: 0 } })],
    controllers: [AppController],
  });
  atEnd(() => app.close());
  const page = await openSse(`${url}/feed`);
  atEnd(() => page.leave());
  await when(page.messages$, ({ data }) => data.includes('api-key-unavailable'));
  const health = await (await fetch(`${url}/health`)).text();
  expect(JSON.parse(health)).toMatchObject({ 'trade-feed': { code: 'api-key-unavailable' } });
  expect((await log.line(/returned no key/)).text).toContain(vault);
  for (const published of [page.text(), health]) expect(published).not.toMatch(isPrivate);
});

it('the answer of a full relay does not give away the number of clients', async () => {
  const { web } = await serveFeed(NEVER, { maxClients: 7 });
  const pages = Array.from({ length: 7 }, () => bytesUntil(web, 'event: hello'));
  await Promise.all(pages);
  const refused = await bytesUntil(web, 'Retry later.');
  expect(refused).toMatch(/^HTTP\/1\.1 503 /);
  expect(refused.slice(refused.indexOf('{'))).not.toContain('7');
});
