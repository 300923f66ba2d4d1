import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { startTradeFeedService, type TradeFeedService } from 'rx-trade-feed/testing';
import { handshakeLines, takeTicket } from '../testing/bare-client.js';
import { abuses, framesIn, harmless, writeFrame } from './client-frames.js';
import { fuzz, seed, timeoutFor, within } from './fuzz.js';
import { changed, changes, cutAt, places } from './mutated.js';
import { connectTo, type GoodClient, goodClient, receivedBy, sendTo } from './raw-client.js';

describe(`the local service and hostile WebSocket clients, with FUZZ_SEED=${seed}`, () => {
  let service: TradeFeedService;
  let good: GoodClient;
  beforeAll(async () => {
    service = await startTradeFeedService({ limits: { ticketsPerWindow: Infinity, closeTimeoutMs: 100 } });
    good = await goodClient(service);
  });
  afterAll(async () => {
    await good[Symbol.asyncDispose]();
    await within(3_000, 'shutdown()', service.shutdown());
  });

  /** Sends a handshake and bytes after it, in one write or two. Returns the bytes after the headers of the answer. */
  const answerTo = async (bytes: Buffer, cuts: readonly number[], isWithHead: boolean, then: 'end' | 'stay') => {
    // One account for each case: a second connection of an account would replace the first.
    const { ticket, subprotocol } = await takeTicket(
      service,
      service.createAccount({ plan: 'developer' }).createApiKey(),
    );
    const head = Buffer.from(
      [...handshakeLines(ticket, { 'Sec-WebSocket-Protocol': subprotocol }), '', ''].join('\r\n'),
    );
    const pieces = isWithHead ? cutAt(Buffer.concat([head, bytes]), cuts) : [head, ...cutAt(bytes, cuts)];
    const socket = connectTo(service);
    const received = receivedBy(socket);
    await sendTo(socket, pieces, then);
    const all = await received;
    const end = all.indexOf('\r\n\r\n') + 4;
    expect(all.subarray(0, end).toString()).toMatch(/^HTTP\/1\.1 101 /);
    return all.subarray(end);
  };

  it(
    'answers each ping, and closes with the code of the rule that was broken',
    () =>
      fuzz(
        'client frames',
        fc.tuple(harmless, abuses, places, fc.boolean()),
        96,
        async ([before, abuse, cuts, isWithHead]) => {
          const sent = [...before, ...abuse.frames];
          const [answer] = await Promise.all([
            answerTo(Buffer.concat(sent.map(writeFrame)), cuts, isWithHead, 'stay'),
            good.isServed(),
          ]);
          const frames = framesIn(answer);
          const pings = before.filter(({ opcode }) => opcode === 9).map(({ payload }) => Buffer.from(payload));
          const pongs = frames.filter(({ opcode }) => opcode === 10).map(({ payload }) => payload);
          expect(pongs.slice(0, pings.length)).toEqual(pings);
          expect(frames.filter(({ opcode }) => opcode !== 10)).toHaveLength(1);
          const { opcode, payload } = frames.at(-1) as { opcode: number; payload: Buffer };
          expect([opcode, payload.readUInt16BE(0)]).toEqual([8, abuse.closeCode]);
          return String(abuse.closeCode);
        },
      ),
    timeoutFor(250),
  );

  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes)),
    fc
      .tuple(harmless, abuses, changes(4))
      .map(([before, { frames }, all]) => changed(Buffer.concat([...before, ...frames].map(writeFrame)), all)),
  );

  it(
    'closes any other connection, and serves a valid client meanwhile',
    () =>
      fuzz('client bytes', fc.tuple(anything, places, fc.boolean()), 96, async ([bytes, cuts, isWithHead]) => {
        const [answer] = await Promise.all([answerTo(bytes, cuts, isWithHead, 'end'), good.isServed()]);
        const last = framesIn(answer).find(({ opcode }) => opcode === 8)?.payload;
        if (last === undefined) return 'no close frame';
        const code = last.length === 0 ? 1005 : last.readUInt16BE(0);
        // The service returns the code of the client, if it may be sent (RFC 6455, 7.4). 1005 means no code.
        expect((code >= 1000 && code <= 1014 && code !== 1004 && code !== 1006) || (code >= 3000 && code <= 4999)).toBe(
          true,
        );
        return [1002, 1008].includes(code) ? String(code) : "the client's code";
      }),
    timeoutFor(250),
  );
});
