import { describe, expect, it } from '@jest/globals';
import { type FeedLog, feedLog } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { createRelay, type Relay, type RelayActivity, type RelayOptions } from '../../src/relay/index.js';
import { all, path, startWriter, textsOf } from '../log/support.js';
import { waitFor } from '../support/wait-for.js';
import { Client, inOrder, range, timeIn } from './support.js';

/** What a test has started, in the order in which it ends. */
let started: (() => unknown)[] = [];
/** Ends what a test has started while its folder is still there. */
const durable = (title: string, test: () => Promise<unknown>) =>
  it(title, async () => {
    await test().finally(async () => {
      for (const end of started) await end();
      started = [];
    });
  });

/** A feed that a log stores. Its frames have consecutive numbers. */
const startFeed = async (log: FeedLog) => {
  const writer = startWriter(log);
  started.push(writer.end);
  let last = 0;
  const isStored = async () => (await all(log, { from: 'latest' }).catch(() => [])).length > 0;
  writer.send({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
  await waitFor(isStored);
  /** Resolves once the frames are stored. */
  const frames = async (count: number, bytes = 0): Promise<number> => {
    const [from, pad] = [last, ' '.repeat(bytes)];
    last += count;
    const next = (n: number) => new Frame('market', Buffer.from(`${n}${pad}`), false, Date.now(), 1);
    writer.send(...range(from + 1, last).map(next));
    await waitFor(async () => textsOf(await all(log, { from: { offset: last } })).length > 0);
    return last;
  };
  return { log, frames, send: writer.send, end: writer.end };
};

const relayOver = (log: FeedLog, options: RelayOptions = {}): { relay: Relay; reports: RelayActivity[] } => {
  const relay = createRelay(log.read$({ from: 'latest' }), { log, ...options });
  relay.hold();
  const reports: RelayActivity[] = [];
  relay.events$.subscribe((event) => reports.push(event));
  started.unshift(() => relay.close());
  return { relay, reports };
};

const numbersIn = (...clients: readonly Client[]): readonly number[] =>
  clients.flatMap(({ payloads }) => payloads.map(Number));

const received = (client: Client, last: number) => waitFor(() => Number(client.payloads.at(-1)) === last);

describe('a relay over a folder', () => {
  durable('continues a page after a restart, although its memory is empty', async () => {
    const feed = await startFeed(feedLog(path()));
    const first = relayOver(feed.log);
    const page = new Client(first.relay);
    await waitFor(() => page.events.length > 0);
    await received(page, await feed.frames(10));
    page.leave();
    first.relay.close();
    await feed.frames(200);
    const { relay, reports } = relayOver(feed.log);
    const again = new Client(relay, { lastEventId: page.lastEventId });
    await received(again, 210);
    await received(again, await feed.frames(5));
    expect(numbersIn(page, again)).toEqual(range(1, 215));
    expect(again.events.map(({ type }) => type)).toEqual(['opened', ...range(1, 205).map(() => 'frame')]);
    inOrder(again.events.map(timeIn));
    expect(reports.filter(({ type }) => type !== 'client-joined')).toEqual([]);
  });
});
