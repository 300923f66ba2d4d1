import { afterEach, describe, expect, it } from '@jest/globals';
import { lastValueFrom, type Observable, takeWhile, tap, toArray } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import { tradeFeedEvents$ } from '../../src/index.js';
import { feedLog, type LogRecord } from '../../src/log/index.js';
import { quick, serveFeed } from '../browser/support.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { opened } from '../operators/stream.js';
import { frame, Source } from '../relay/support.js';
import { optionsFor } from '../support/feed.js';
import { workers } from '../support/start-worker.js';
import { waitFor } from '../support/wait-for.js';
import { accept, close, startWire, text } from '../support/wire.js';

const folder = tempFolder();
const payloads = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `{"n":${from + n}}`);

/** Appends a feed up to the payload `last`. Returns the log's records. */
const appended = async (name: string, events$: Observable<unknown>, last: string): Promise<readonly LogRecord[]> => {
  const log = feedLog(folder.path(name));
  const isLast = (event: unknown) => (event as LogRecord).type === 'frame' && textOf(event as LogRecord) === last;
  await lastValueFrom(events$.pipe(takeWhile((event) => !isLast(event), true)).pipe(log.append()));
  return lastValueFrom(log.read$({ follow: false }).pipe(toArray()));
};
const textOf = (record: LogRecord) => (record.type === 'frame' ? record.text() : undefined);
const textsIn = (records: readonly LogRecord[]) => records.flatMap((record) => textOf(record) ?? []);
const missedIn = (records: readonly LogRecord[]) =>
  records.reduce((sum, record) => sum + (record.type === 'gap' ? (record.missed ?? 0) : 0), 0);

describe('a log of a feed in a worker', () => {
  afterEach(() => void workers.started.splice(0));

  it('has what the service sent, in order, with a gap between two connections', async () => {
    await using wire = await startWire({
      handshake: [accept(...payloads(0, 300).map(text), close(1001)), accept(...payloads(300, 500).map(text))],
    });
    const events$ = tradeFeedEvents$('market', optionsFor(wire, { receiveIn: 'worker' }));
    const records = await appended('worker', events$, '{"n":499}');
    expect(workers.started).toHaveLength(1);
    expect(textsIn(records)).toEqual(payloads(0, 500));
    const types = records.map(({ type }) => type);
    expect(types.filter((type) => type === 'opened' || type === 'gap')).toEqual(['opened', 'opened', 'gap']);
    expect(records.map(({ type }, n) => (type === 'gap' ? textOf(records[n + 1]!) : ''))).toContain('{"n":300}');
    const worker = workers.started[0];
    await waitFor(() => worker?.threadId === -1);
  });
});

describe('a log of a relay', () => {
  it('has each frame of the service or counts it in a gap, even if the relay loses the page for a while', async () => {
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
    const records = appended('relay', page$, '{"n":99}');
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
});
