import { it } from '@jest/globals';
import type { FeedLog } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { createRelay, type Relay, type RelayActivity, type RelayOptions } from '../../src/relay/index.js';
import { all, startWriter, textsOf } from '../log/support.js';
import { waitFor } from '../support/wait-for.js';
import { type Client, range } from './support.js';

/** What a test has started, in the order in which it ends. */
let started: (() => unknown)[] = [];
/** Ends what a test has started while its folder is still there. */
export const durable = (title: string, test: () => Promise<unknown>) =>
  it(title, async () => {
    await test().finally(async () => {
      for (const end of started) await end();
      started = [];
    });
  });

/** Starts a feed that a log stores. Its frames have consecutive numbers. */
export const startFeed = async (log: FeedLog) => {
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
    await waitFor(async () => Number(textsOf(await all(log, { from: { offset: last } })).at(-1)) === last);
    return last;
  };
  return { log, frames, send: writer.send, end: writer.end };
};

/** A relay that only reads what comes from now on. */
export const relayOver = (log: FeedLog, options: RelayOptions = {}): { relay: Relay; reports: RelayActivity[] } => {
  const relay = createRelay(log.read$({ from: 'latest' }), { log, ...options });
  relay.hold();
  const reports: RelayActivity[] = [];
  relay.events$.subscribe((event) => reports.push(event));
  started.unshift(() => relay.close());
  return { relay, reports };
};

/** The numbers of the frames that clients have received. */
export const numbersIn = (...clients: readonly Client[]): readonly number[] =>
  clients.flatMap(({ payloads }) => payloads.map(Number));

export const received = (client: Client, last: number) => waitFor(() => Number(client.payloads.at(-1)) === last);
