import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { filter, lastValueFrom, share, Subject, takeUntil, toArray } from 'rxjs';
import { type Frame, tradeFeed$, type TradeFeedOptions } from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { type Holder, holders } from '../operators/own-bytes/holders.js';
import { isAllCases } from '../support/cases.js';
import { optionsFor, until } from '../support/feed.js';
import { startWire, switching, type Wire, wsFrame } from '../support/wire.js';

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
});
