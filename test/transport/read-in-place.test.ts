import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { setImmediate as turn } from 'node:timers/promises';
import { config, lastValueFrom, of, share, take, toArray } from 'rxjs';
import { WebSocket } from 'ws';
import { conflate, type Frame, tradeFeed$, type TradeFeedOptions } from '../../src/index.js';
import { ReceivedFrame } from '../../src/frames/received-frame.js';
import { cases } from '../support/cases.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import { optionsFor } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import { close, type HandshakeStep, startWire, subprotocol, switching, wsFrame } from '../support/wire.js';

/** A frame as a subscriber sees it. */
type Seen = readonly [isBinary: boolean, payload: string];

const seenOf = ({ isBinary, data }: Pick<Frame, 'isBinary' | 'data'>): Seen => [isBinary, data.toString('base64')];

/** Reads a frame at some time, in some way. The promise resolves with what was seen. */
type Look = (frame: Frame, n: number) => Seen | Promise<Seen>;

const asText = (frame: Frame): Seen =>
  frame.isBinary ? seenOf(frame) : [false, Buffer.from(frame.text()).toString('base64')];

/** Returns what was seen twice, or both if they differ. */
const bothOf = (first: Seen, second: Seen): Seen =>
  first[1] === second[1] ? second : [second[0], `${first[1]} and later ${second[1]}`];

/** Reads a frame only after the connection has ended: see `ourFrames`. */
const lateOf = (frame: Frame): Promise<Seen> => new Promise((resolve) => void atEnd.push(() => resolve(asText(frame))));
const atEnd: (() => void)[] = [];

const looks: Record<string, Look> = {
  'as text, at once': asText,
  'as bytes, at once': seenOf,
  'as text, in a microtask': (frame) => Promise.resolve(frame).then(asText),
  'as bytes, in a microtask': (frame) => Promise.resolve(frame).then(seenOf),
  'in a timer': (frame) => new Promise((resolve) => setTimeout(() => resolve(asText(frame)))),
  'as bytes in a timer, and as text before': (frame) => {
    frame.text();
    return new Promise((resolve) => setTimeout(() => resolve(seenOf(frame))));
  },
  'as text in a later turn, and as bytes before': (frame) => {
    seenOf(frame);
    return turn().then(() => asText(frame));
  },
  'as text twice, at once and in a timer': (frame) => {
    const first = asText(frame);
    return new Promise((resolve) => setTimeout(() => resolve(bothOf(first, asText(frame)))));
  },
  'as bytes twice, at once and in a microtask': (frame) => {
    const first = seenOf(frame);
    return Promise.resolve(frame).then((later) => bothOf(first, seenOf(later)));
  },
  'by the size, at once, and as bytes in a timer': (frame) => {
    const { byteLength } = frame;
    return new Promise((resolve) =>
      setTimeout(() => resolve(byteLength === frame.data.length ? seenOf(frame) : [frame.isBinary, 'wrong size'])),
    );
  },
  'never, but at the end': (frame) => lateOf(frame),
  'by an operator that stores it': (frame) =>
    lastValueFrom(of(frame).pipe(conflate(({ connection }) => connection, 1_000))).then(({ value }) => asText(value)),
};

const payloads = fc.oneof(
  fc.constantFrom(0, 1, 125, 126, 4_000, 70_000).map((size) => ({ opcode: 1, bytes: Buffer.alloc(size, '{"n":12}') })),
  fc.string({ unit: 'grapheme' }).map((text) => ({ opcode: 1, bytes: Buffer.from(text) })),
  fc.constantFrom(3, 30_000).map((size) => ({ opcode: 1, bytes: Buffer.from('€'.repeat(size)) })),
  fc
    .constantFrom(0, 5, 5_000, 300_000)
    .map((size) => ({ opcode: 2, bytes: Buffer.alloc(size, Buffer.from([200, 7])) })),
);
const message = fc.record({
  payload: payloads,
  repeats: fc.constantFrom<number[]>(0, 0, 40),
  splitAt: fc.option(fc.nat(5)),
  hasPing: fc.boolean(),
});
type Message = typeof message extends fc.Arbitrary<infer T> ? T : never;

const encoded = ({ payload: { opcode, bytes }, repeats, splitAt, hasPing }: Message): Buffer => {
  const ping = hasPing ? wsFrame(9, 'ping') : Buffer.alloc(0);
  const one =
    splitAt === null
      ? [wsFrame(opcode, bytes), ping]
      : [wsFrame(opcode, bytes.subarray(0, splitAt), false), ping, wsFrame(0, bytes.subarray(splitAt))];
  const count = bytes.length > 5_000 ? 1 : 1 + repeats;
  return Buffer.concat(Array.from({ length: count }, () => Buffer.concat(one)));
};

const streams = fc.record({
  messages: fc.array(message, { minLength: 1, maxLength: 8 }),
  cut: fc.constantFrom(2 ** 30, 2 ** 30, 50_000, 16_384, 997),
});
type Stream = typeof streams extends fc.Arbitrary<infer T> ? T : never;

/** Writes the head of the response, the frames in pieces, and a close frame with the last piece. */
const sends =
  ({ messages, cut }: Stream): HandshakeStep =>
  (peer) => {
    const bytes = Buffer.concat([...messages.map(encoded), close(4001, 'done')]);
    peer.socket.write(switching(peer));
    const write = (at: number): void => {
      if (at >= bytes.length || peer.socket.destroyed) return;
      peer.socket.write(bytes.subarray(at, at + cut), () => setImmediate(write, at + cut));
    };
    write(0);
  };

// The types of ws do not contain this option yet. Its default would end a connection with many pings.
const limits = { maxPendingAutoPongs: 100_000 };

/** Returns what bare `ws` emits. */
const bareFrames = (wssUrl: string, ca: string | undefined): Promise<Seen[]> =>
  new Promise((resolve, reject) => {
    const seen: Seen[] = [];
    new WebSocket(wssUrl, [subprotocol], { ...limits, perMessageDeflate: false, ...(ca && { ca }) })
      .on('message', (data: Buffer, isBinary) => seen.push(seenOf({ data, isBinary })))
      .on('error', reject)
      .on('close', () => resolve(seen));
  });

/** Returns what a subscriber sees that reads each frame with `look`, and what it sees at the end, when nothing is received any more. */
const ourFrames = async (options: TradeFeedOptions, look: Look): Promise<{ seen: Seen[]; late: Seen[] }> => {
  const frames: Frame[] = [];
  const seen: Promise<Seen>[] = [];
  await new Promise((resolve) => {
    tradeFeed$('market', options).subscribe({
      next: (each) => {
        frames.push(each);
        seen.push(Promise.resolve(look(each, seen.length)));
      },
      error: resolve,
    });
  });
  for (const read of atEnd.splice(0)) read();
  return { seen: await Promise.all(seen), late: frames.map(seenOf) };
};

const ways = [
  ['plain', false],
  ['over TLS', true],
] as const;

describe.each(ways)('frames that are read in place, %s', (_, isTls) => {
  let tls: Certificate | undefined;
  beforeAll(async () => {
    tls = isTls ? await certificateFor() : undefined;
  });
  const start = async (stream: Stream) => {
    const wire = await startWire({ handshake: [sends(stream)], ...(tls && { tls }) });
    return { wire, options: optionsFor(wire, tls && { tls: { ca: tls.cert } }) };
  };

  // Neighbouring frames are read in different ways, so that the frames of one read are in all states at its end.
  const plans = fc.oneof(
    fc.constantFrom(...Object.keys(looks)).map((name) => [name]),
    fc.array(fc.constantFrom(...Object.keys(looks)), { minLength: 2, maxLength: 5 }),
  );

  it('are the frames of ws, whenever they are read, and their bytes never change', async () => {
    await fc.assert(
      fc.asyncProperty(streams, plans, async (stream, names) => {
        const { wire, options } = await start(stream);
        await using _wire = wire;
        const [bare, ours] = await Promise.all([
          bareFrames(wire.wssUrl, tls?.cert),
          ourFrames(options, (frame, n) => (looks[names[n % names.length] as string] as Look)(frame, n)),
        ]);
        expect(ours.seen).toEqual(bare);
        expect(ours.late).toEqual(bare);
      }),
      { numRuns: cases(100) },
    );
  }, 300_000);

  const many: Stream = {
    messages: [
      { payload: { opcode: 1, bytes: Buffer.alloc(900, 'text') }, repeats: 200, splitAt: null, hasPing: false },
      { payload: { opcode: 2, bytes: Buffer.alloc(900, 'bytes') }, repeats: 200, splitAt: null, hasPing: true },
    ],
    cut: 2 ** 30,
  };
  const payloadsOf = ({ messages }: Stream) =>
    messages.flatMap(({ payload, repeats }) => Array<string>(repeats + 1).fill(String(payload.bytes)));

  it('are the same for two subscribers that read them in different ways', async () => {
    const { wire, options } = await start(many);
    await using _wire = wire;
    const shared = tradeFeed$('market', options).pipe(share());
    const [texts, datas, late]: [string[], string[], Frame[]] = [[], [], []];
    await new Promise((resolve) => {
      shared.subscribe({ next: (each) => texts.push(each.text()), error: resolve });
      shared.subscribe({ next: (each) => datas.push(String(each.data)), error: () => undefined });
      shared.subscribe({ next: (each) => late.push(each), error: () => undefined });
    });
    const expected = payloadsOf(many);
    expect([texts, datas, late.map(({ data }) => String(data))]).toEqual([expected, expected, expected]);
  });

  it('are kept when the subscriber throws', async () => {
    const { wire, options } = await start(many);
    await using _wire = wire;
    const thrown: unknown[] = [];
    const { onUnhandledError } = config;
    config.onUnhandledError = (error) => thrown.push(error);
    try {
      const frames: Frame[] = [];
      await new Promise((resolve) => {
        tradeFeed$('market', options).subscribe({
          next: (each) => {
            frames.push(each);
            throw new RangeError('of the subscriber');
          },
          error: resolve,
        });
      });
      await turn();
      expect(frames.map((each) => each.text())).toEqual(payloadsOf(many));
      await waitFor(() => thrown.length === frames.length);
    } finally {
      config.onUnhandledError = onUnhandledError;
    }
  });

  it('are leased until the end of `next` if ws has read them', async () => {
    const { wire, options } = await start(many);
    await using _wire = wire;
    const agent = isTls ? new HttpsAgent() : new HttpAgent();
    const frames: ReceivedFrame[] = [];
    const stillLeased: Frame[] = [];
    await new Promise((resolve) => {
      tradeFeed$('market', { ...options, agent }).subscribe({
        next: (each) => {
          const last = frames.at(-1);
          if (last?.isLeased) stillLeased.push(last);
          if (each instanceof ReceivedFrame) frames.push(each);
        },
        error: resolve,
      });
    });
    expect([stillLeased, frames.at(-1)?.isLeased]).toEqual([[], false]);
    expect(frames.map((each) => each.text())).toEqual(payloadsOf(many));
    agent.destroy();
  });

  it('are kept when the subscription ends in the middle of a read', async () => {
    const { wire, options } = await start(many);
    await using _wire = wire;
    const frames = await lastValueFrom(tradeFeed$('market', options).pipe(take(7), toArray()));
    await turn();
    expect(frames.map((each) => each.text())).toEqual(payloadsOf(many).slice(0, 7));
  });
});
