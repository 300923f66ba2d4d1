import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { Agent } from 'node:http';
import { cuts, frameOf, serverBytes } from '../support/server-bytes.js';
import { fuzz, seed, timeoutFor } from './fuzz.js';
import { goodHead, goodTicket, type Script } from './answers.js';
import { type Scripted, startScripted } from './scripted.js';

const maxFrameBytes = 66_000;

/** The bytes after a valid handshake: split at some positions, the first with the headers or after them. */
interface Stream {
  readonly bytes: Buffer;
  readonly cut: (bytes: Buffer) => Buffer[];
  readonly isWithHead: boolean;
  /** Whether the socket belongs to an agent of the user. `ws` reads such a socket, not this library. */
  readonly isOfAgent: boolean;
  readonly end: 'end' | 'reset' | 'stay';
}

const streams: Arbitrary<Stream> = fc.record({
  bytes: fc.oneof(
    { arbitrary: serverBytes, weight: 4 },
    { arbitrary: fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)), weight: 1 },
  ),
  cut: cuts,
  isWithHead: fc.boolean(),
  isOfAgent: fc.boolean(),
  end: fc.oneof(
    { arbitrary: fc.constantFrom('end' as const, 'reset' as const), weight: 8 },
    { arbitrary: fc.constant('stay' as const), weight: 1 },
  ),
});

const scriptOf = ({ bytes, cut, isWithHead, end }: Stream): Script => ({
  ticket: goodTicket,
  handshake: {
    end,
    bytes: (request) => {
      const head = Buffer.from(goodHead(request));
      return isWithHead ? cut(Buffer.concat([head, bytes])) : [head, ...cut(bytes)];
    },
  },
});

/** The codes of a stream if the server sends parts of valid frames only. */
const ofRightFrames = ['connection-lost', 'connection-stalled'];

describe(`WebSocket bytes of a hostile server, with FUZZ_SEED=${seed}`, () => {
  let scripted: Scripted;
  beforeAll(async () => void (scripted = await startScripted()));
  afterAll(async () => {
    await scripted[Symbol.asyncDispose]();
  });

  // A silent server is dropped after a short time, but not before it ends the connection.
  const run = (stream: Stream) =>
    scripted.run(scriptOf(stream), {
      maxFrameBytes,
      idleTimeoutMs: stream.end === 'stay' ? 30 : 15_000,
      ...(stream.isOfAgent && { agent: new Agent() }),
    });

  it(
    'end in a clear failure of the stream',
    () =>
      fuzz('WebSocket bytes', streams, 96, async (stream) => {
        const { code, failure, events } = await run(stream);
        // A reset may arrive before the answer to the handshake.
        if (stream.end !== 'reset') expect(failure.stage).toBe('stream');
        if (code === 'connection-stalled') expect(stream.end).toBe('stay');
        expect(failure.framesReceived).toBe(events.filter(({ type }) => type === 'frame').length);
        return code;
      }),
    timeoutFor(250),
  );

  it(
    'of valid frames, cut off anywhere, deliver the complete frames once and in order',
    () =>
      fuzz('right frames, cut off', rightStreams, 72, async ({ payloads, keep, ...rest }) => {
        const frames = payloads.map((payload) => frameOf(2, payload));
        const whole = Buffer.concat(frames);
        const bytes = whole.subarray(0, Math.ceil(keep * whole.length));
        const { code, events } = await run({ ...rest, bytes });
        let left = bytes.length;
        const complete = payloads.filter((_, i) => (left -= frames[i]?.length ?? 0) >= 0);
        const received = events.flatMap((event) => (event.type === 'frame' ? [event.data] : []));
        expect(ofRightFrames).toContain(code);
        expect(received.map((data) => Buffer.from(data))).toEqual(complete.map((data) => Buffer.from(data)));
        return code;
      }),
    timeoutFor(150),
  );
});

const rightStreams = fc.record({
  payloads: fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 30 }),
  keep: fc.double({ min: 0, max: 1, noNaN: true }),
  cut: cuts,
  isWithHead: fc.boolean(),
  isOfAgent: fc.boolean(),
  end: fc.constantFrom('end' as const, 'stay' as const),
});
