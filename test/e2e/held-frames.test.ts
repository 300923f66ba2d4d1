import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { catchError, filter, lastValueFrom, NEVER, share, Subject, takeUntil, tap, toArray } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import {
  type DropReport,
  type Frame,
  mergeMapBounded,
  toAsyncIterable,
  tradeFeed$,
  tradeFeedEvents$,
  type TradeFeedOptions,
} from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import { serveFeed } from '../browser/support.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { type Holder, holders } from '../operators/own-bytes/holders.js';
import { isAllCases } from '../support/cases.js';
import { optionsFor, until } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import { startWire, switching, type Wire, wsFrame } from '../support/wire.js';
import { connectAs } from '../testing/bare-client.js';

/** The payloads that the holders keep. They fit into the holders' queues. */
const payloads = Array.from({ length: 120 }, (_, n) => {
  const text = [`{"n":${n}}`, `${n} € \u{1f642} `.repeat(20), 'x'.repeat(n % 7 === 0 ? 6_000 : n)][n % 3] as string;
  return { opcode: n % 4 === 3 ? 2 : 1, bytes: Buffer.from(text.padEnd(4)) };
});
/** A frame that nothing keeps. A few of them fill the read buffer, so that earlier memory gets reused. */
const filler = wsFrame(2, Buffer.alloc(200_000, 0xee));
const isHeld = ({ byteLength }: Frame): boolean => byteLength < 200_000;

/** Counts the payloads that were sent, independently of the library. */
const checksum = (bytes: Uint8Array): string => createHash('sha1').update(bytes).digest('hex');
const sent = payloads.map(({ bytes }) => checksum(bytes));

/** Starts a service that sends the payloads in groups, with fillers after each group. */
const start = (): Promise<Wire> =>
  startWire({
    handshake: [
      (peer) => {
        peer.socket.write(switching(peer));
        const send = (from: number): void => {
          if (peer.socket.destroyed || from > payloads.length) return;
          const group = payloads.slice(from, from + 30).map(({ opcode, bytes }) => wsFrame(opcode, bytes));
          peer.socket.write(Buffer.concat([...group, filler, filler, filler, filler]), () =>
            setImmediate(send, from + 30),
          );
        };
        send(0);
      },
    ],
  });

/** The number of fillers that `start` sends. */
const fillers = 4 * (payloads.length / 30 + 1);

const folder = tempFolder();
let logs = 0;

const hops: Readonly<Record<string, Holder>> = {
  ...holders,
  'an array': (frames) => {
    const held: Frame[] = [];
    const subscription = frames.subscribe((frame) => held.push(frame));
    return () => {
      subscription.unsubscribe();
      return Promise.resolve(held.map(({ data }) => data));
    };
  },
  'a log': (frames) => {
    const log = feedLog(folder.path(`held-${(logs += 1)}`));
    const end = new Subject<void>();
    const source = frames.pipe(takeUntil(end));
    const recorded = lastValueFrom(source.pipe(log.append(), toArray()));
    return async () => {
      end.next();
      await recorded;
      const records = await lastValueFrom(log.read$({ follow: false }).pipe(toArray()));
      return records.flatMap((event) => (event.type === 'frame' ? [event.data] : []));
    };
  },
};

const modes: readonly (readonly [string, () => TradeFeedOptions])[] = [
  ['here', () => ({})],
  ["with a user's agent", () => ({ agent: new Agent() })],
  ['in a worker', () => ({ receiveIn: 'worker' })],
];

describe.each(modes)('frames received %s', (mode, optionsOf) => {
  // A frame is held in the same way, however it was received. So outside CI, a few holders are enough for the other modes.
  const tried = Object.entries(hops).filter((_, n) => isAllCases || mode === 'here' || n % 4 === 0);
  it.each(tried)('keep their bytes in %s', async (name, hold) => {
    await using wire = await start();
    const frames = tradeFeed$('market', optionsFor(wire, optionsOf())).pipe(share());
    const drain = hold(frames.pipe(filter(isHeld)));
    let count = 0;
    await until(frames, (frame) => !isHeld(frame) && (count += 1) === fillers);
    const held = (await drain()).map(checksum);
    // This operator drops the older frames of a key.
    if (name === 'conflate, recurring keys') {
      expect(held.length).toBeGreaterThan(10);
      expect(held.filter((each) => !sent.includes(each))).toEqual([]);
    } else {
      // A queue's consumer takes the first frame at once.
      expect(held.length).toBeGreaterThanOrEqual(sent.length - 1);
      expect(held).toEqual(sent.slice(-held.length));
    }
  });

  it('keep their bytes over a relay', async () => {
    await using wire = await start();
    const events = tradeFeedEvents$('market', optionsFor(wire, optionsOf())).pipe(
      filter((event) => event.type !== 'frame' || isHeld(event)),
      catchError(() => NEVER),
    );
    const { relay, web } = await serveFeed(events, { lingerMs: 0 });
    let count = 0;
    const received = await until(relayFeed$(web.url), ({ type }) => type === 'frame' && (count += 1) === sent.length);
    relay.close();
    expect(received.flatMap((event) => (event.type === 'frame' ? [checksum(event.data)] : []))).toEqual(sent);
  });
});

const burst = isAllCases ? 50_000 : 20_000;
const perTurn = 500;

const payloadOf = (n: number): string => `${n}`.padEnd(400);
const numberOf = (frame: Frame): number => Number(frame.text());
const sum = (reports: readonly DropReport[]): number => reports.reduce((total, { dropped }) => total + dropped, 0);

it('a slow consumer after mergeMapBounded causes no 1013, and every frame is either processed or counted as dropped', async () => {
  const service = await startTradeFeedService({ limits: { backlogBytes: 256 * 1024 } });
  try {
    // Proves that the burst is large enough: a client that stops reading is closed with 1013.
    const stopped = await connectAs(service, service.createAccount({ plan: 'developer' }).createApiKey());
    stopped.ws.pause();

    const reports: DropReport[] = [];
    const types: string[] = [];
    const processed: number[] = [];
    let received = 0;
    const options = { baseUrl: service.baseUrl, apiKey: service.createAccount({ plan: 'developer' }).createApiKey() };
    const frames$ = tradeFeedEvents$('market', options).pipe(
      tap(({ type }) => {
        if (type === 'frame') received += 1;
        else types.push(type);
      }),
      filter((event) => event.type === 'frame'),
      share(),
    );
    const work = async (frame: Frame): Promise<void> => {
      await turn();
      processed.push(numberOf(frame));
    };
    const bounded = frames$
      .pipe(mergeMapBounded(work, { capacity: 1_000, onDrop: (report) => reports.push(report) }))
      .subscribe();

    const loopReports: DropReport[] = [];
    const looped: number[] = [];
    const loop = (async () => {
      for await (const frame of toAsyncIterable({ capacity: 1_000, onDrop: (report) => loopReports.push(report) })(
        frames$,
      )) {
        await turn();
        looped.push(numberOf(frame));
        if (looped.at(-1) === burst) break;
      }
    })();

    await waitFor(() => types.includes('opened'));
    for (let n = 1; n <= burst; n += 1) {
      service.push('market', payloadOf(n));
      if (n % perTurn === 0) await turn();
    }
    await loop;
    await waitFor(() => processed.at(-1) === burst);
    bounded.unsubscribe();

    expect(types).toEqual(['ticket-requested', 'ticket-issued', 'opened']);
    expect(received).toBe(burst);
    for (const [numbers, drops] of [
      [processed, reports],
      [looped, loopReports],
    ] as const) {
      expect(numbers.length + sum(drops)).toBe(burst);
      expect(drops.at(-1)?.total).toBe(sum(drops));
      expect(sum(drops)).toBeGreaterThan(burst / 2);
      expect(drops.length).toBeLessThan(numbers.length / 100);
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    }

    stopped.ws.resume();
    expect(await stopped.closed).toMatchObject({ code: 1013 });
  } finally {
    await service.shutdown();
  }
}, 60_000);
