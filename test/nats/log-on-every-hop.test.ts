/** @lane brokers */
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { NatsConnection } from '@nats-io/transport-node';
import { filter, lastValueFrom, type Observable, share, Subject, takeWhile, tap, toArray } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import { type FeedEvent, tradeFeedEvents$ } from '../../src/index.js';
import { feedLog, type FeedLog, type LogRecord } from '../../src/log/index.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { tumblingWindow } from '../../src/operators/index.js';
import { quick, receive, serveFeed } from '../browser/support.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { opened } from '../operators/stream.js';
import { frame, Source } from '../relay/support.js';
import { itInCi } from '../support/cases.js';
import { optionsFor } from '../support/feed.js';
import { workers } from '../support/start-worker.js';
import { waitFor } from '../support/wait-for.js';
import { accept, close, startWire, text } from '../support/wire.js';

const folder = tempFolder();
const payloads = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `{"n":${from + n}}`);

const all = (log: FeedLog): Promise<LogRecord[]> => lastValueFrom(log.read$({ follow: false }).pipe(toArray()));

/** Appends a feed up to the payload `last`. Returns the log's records. */
const appended = async (log: FeedLog, events$: Observable<unknown>, last: string): Promise<readonly LogRecord[]> => {
  const isLast = (event: unknown) => (event as LogRecord).type === 'frame' && textOf(event as LogRecord) === last;
  await lastValueFrom(events$.pipe(takeWhile((event) => !isLast(event), true)).pipe(log.append()));
  return all(log);
};
const textOf = (record: LogRecord) => (record.type === 'frame' ? record.text() : undefined);
const textsIn = (records: readonly LogRecord[]) => records.flatMap((record) => textOf(record) ?? []);
const missedIn = (records: readonly LogRecord[]) =>
  records.reduce((sum, record) => sum + (record.type === 'gap' ? (record.missed ?? 0) : 0), 0);

/** Tests of a log on each engine. @param test - defines a test @param open - returns the log of a name */
const hopsOf = (test: typeof itInCi, open: (name: string) => FeedLog): void => {
  afterEach(() => void workers.started.splice(0));

  test('of a feed in a worker has what the service sent, in order, with a gap between two connections', async () => {
    await using wire = await startWire({
      handshake: [accept(...payloads(0, 300).map(text), close(1001)), accept(...payloads(300, 500).map(text))],
    });
    const events$ = tradeFeedEvents$('market', optionsFor(wire, { receiveIn: 'worker' }));
    const records = await appended(open('worker'), events$, '{"n":499}');
    expect(workers.started).toHaveLength(1);
    expect(textsIn(records)).toEqual(payloads(0, 500));
    const types = records.map(({ type }) => type);
    expect(types.filter((type) => type === 'opened' || type === 'gap')).toEqual(['opened', 'opened', 'gap']);
    expect(records.map(({ type }, n) => (type === 'gap' ? textOf(records[n + 1]!) : ''))).toContain('{"n":300}');
    const worker = workers.started[0];
    await waitFor(() => worker?.threadId === -1);
  });

  test('of a relay has each frame of the service or counts it in a gap, even if the relay loses the page for a while', async () => {
    const source = new Source();
    const served = await serveFeed(source.events$, { lingerMs: Infinity, capacity: 30 });
    served.relay.hold();
    let n = 0;
    const send = (count: number) => {
      for (const end = n + count; n < end; n += 1) source.emit(frame(`{"n":${n}}`, Date.now()));
    };
    source.emit(opened(Date.now()));
    let received = 0;
    const page$ = relayFeed$(served.web.url, quick).pipe(tap(({ type }) => (received += type === 'frame' ? 1 : 0)));
    const records = appended(open('relay'), page$, '{"n":99}');
    await served.hasClients(1);
    send(20);
    await waitFor(() => received === 20);
    served.web.reset();
    // The relay keeps the last 30 frames.
    send(60);
    await waitFor(() => received > 20);
    send(20);
    const all = await records;
    const texts = textsIn(all);
    expect(new Set(texts).size).toBe(texts.length);
    expect(texts).toEqual(payloads(0, 100).filter((each) => texts.includes(each)));
    expect(texts.length + missedIn(all)).toBe(100);
    expect(all.filter(({ type }) => type === 'gap')).toHaveLength(1);
    expect(missedIn(all)).toBeGreaterThanOrEqual(30);
  });

  test('has every frame beside another operator on a shared feed, and after a new subscription', async () => {
    const source = new Subject<unknown>();
    const feed$ = source.pipe(share());
    const log = open('shared');
    const windows: { readonly count: number }[] = [];
    const windows$ = feed$.pipe(filter((event) => event !== 'end')) as Observable<FeedEvent>;
    windows$
      .pipe(tumblingWindow({ lengthMs: 10 }))
      .subscribe((window) => windows.push({ count: window.frames.length }));
    for (const [begin, end] of [
      [0, 50],
      [50, 70],
    ] as const) {
      const writing = lastValueFrom(
        feed$.pipe(
          takeWhile((event) => event !== 'end'),
          log.append(),
          toArray(),
        ),
      );
      source.next(opened(1_000 + begin * 10));
      for (let n = begin; n < end; n += 1) source.next(frame(`{"n":${n}}`, 1_000 + n * 10));
      source.next('end');
      await writing;
    }
    source.complete();
    const records = await all(log);
    expect(textsIn(records)).toEqual(payloads(0, 70));
    expect(records.filter(({ type }) => type === 'gap')).toMatchObject([{ failure: { code: 'log-paused' } }]);
    expect(windows.reduce((sum, { count }) => sum + count, 0)).toBe(70);
  });

  test('fills relays that start again: a page continues without a gap, a frame lost or a frame twice', async () => {
    const log = open('relayed');
    const source = new Subject<unknown>();
    const writer = source.pipe(log.append()).subscribe();
    let sent = 0;
    const send = (count: number) => {
      for (const end = sent + count; sent < end; sent += 1) source.next(frame(`{"n":${sent}}`, Date.now()));
    };
    source.next(opened(Date.now()));
    send(1);
    await waitFor(async () => (await all(log).catch(() => [])).length > 1);
    const relayed = (port?: number) => serveFeed(log.read$(), { lingerMs: Infinity }, {}, port);
    let { relay, web } = await relayed();
    relay.hold();
    await waitFor(() => relay.status().stored.events >= 2);
    const page = receive(web.url, quick);
    for (let restart = 0; restart < 3; restart += 1) {
      await waitFor(() => relay.status().clients.length === 1);
      send(3);
      await waitFor(() => page.frames.length === sent - 1);
      const { port } = web;
      relay.close();
      await web[Symbol.asyncDispose]();
      // No relay sends these.
      send(4);
      ({ relay, web } = await relayed(port));
      relay.hold();
    }
    await waitFor(() => page.frames.length === sent - 1);
    writer.unsubscribe();
    expect(page.frames.map((each) => each.text())).toEqual(payloads(1, sent));
    expect(page.events.filter(({ type }) => type === 'gap')).toEqual([]);
  });
};

describe('a log in a folder', () => hopsOf(it, (name) => feedLog(folder.path(name))));

describeInstalled('nats', 'a log on JetStream', () => {
  let server: RealServer;
  let connection: NatsConnection;
  beforeAll(async () => {
    server = await startServer('nats');
    connection = await server.nats();
  });
  afterAll(() => server.stop());
  hopsOf(itInCi, (name) => jetStreamLog(connection, { name }));
});
