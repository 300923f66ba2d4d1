import { describe, expect } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { Agent } from 'node:http';
import { createServer } from 'node:net';
import { closed } from '../support/feed.js';
import { listen } from '../support/listen.js';
import { cuts, serverBytes } from '../support/server-bytes.js';
import { wsFrame } from '../support/wire.js';
import { fuzz, seed } from './fuzz.js';
import { changed, changes } from './mutated.js';
import {
  type Answer,
  type End,
  goodHead,
  goodTicket,
  httpAnswer,
  play,
  scriptedServer,
  ticketFields,
} from './scripted.js';

const scripted = scriptedServer();
const maxFrameBytes = 66_000;

/** The bytes after a valid handshake: split at some positions, the first with the headers or after them. */
interface Stream {
  readonly bytes: Buffer;
  readonly cut: (bytes: Buffer) => Buffer[];
  readonly isWithHead: boolean;
  /** Whether the socket belongs to the user's agent. If so, `ws` reads it instead of this library. */
  readonly isOfAgent: boolean;
  readonly end: End;
}

// Drops a silent server quickly, but not before a server that ends the connection gets to do so.
const run = ({ bytes, cut, isWithHead, isOfAgent, end }: Stream) => {
  const handshake: Answer = {
    end,
    bytes: (request) => {
      const head = Buffer.from(goodHead(request));
      return isWithHead ? cut(Buffer.concat([head, bytes])) : [head, ...cut(bytes)];
    },
  };
  const idleTimeoutMs = end === 'stay' ? 30 : 15_000;
  const agent = isOfAgent && { agent: new Agent() };
  return scripted.run({ ticket: goodTicket, handshake }, { maxFrameBytes, idleTimeoutMs, ...agent });
};

const anyBytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes));
const delivery = { cut: cuts, isWithHead: fc.boolean(), isOfAgent: fc.boolean() };
const streams: Arbitrary<Stream> = fc.record({
  ...delivery,
  bytes: fc.oneof({ arbitrary: serverBytes, weight: 4 }, { arbitrary: anyBytes(400), weight: 1 }),
  end: fc.oneof(
    { arbitrary: fc.constantFrom<End>('end', 'reset'), weight: 8 },
    { arbitrary: fc.constant<End>('stay'), weight: 1 },
  ),
});
const rightStreams = fc.record({
  ...delivery,
  payloads: fc.array(anyBytes(200), { maxLength: 30 }),
  keep: fc.double({ min: 0, max: 1, noNaN: true }),
  end: fc.constantFrom<End>('end', 'stay'),
});

describe(`WebSocket bytes of a hostile server, with FUZZ_SEED=${seed}`, () => {
  fuzz('end in a clear failure of the stream', 'WebSocket bytes', 96, streams, async (stream) => {
    const { code, failure, events } = await run(stream);
    // A reset may arrive before the answer to the handshake.
    if (stream.end !== 'reset') expect(failure.stage).toBe('stream');
    if (code === 'connection-stalled') expect(stream.end).toBe('stay');
    expect(failure.framesReceived).toBe(events.filter(({ type }) => type === 'frame').length);
    return code;
  });

  const title = 'of valid frames, cut off anywhere, deliver the complete frames once and in order';
  fuzz(title, 'right frames, cut off', 72, rightStreams, async ({ payloads, keep, ...rest }) => {
    const frames = payloads.map((payload) => wsFrame(2, payload));
    const whole = Buffer.concat(frames);
    const bytes = whole.subarray(0, Math.ceil(keep * whole.length));
    const { code, events } = await run({ ...rest, bytes });
    let left = bytes.length;
    const complete = payloads.filter((_, i) => (left -= frames[i]?.length ?? 0) >= 0);
    const received = events.flatMap((event) => (event.type === 'frame' ? [Buffer.from(event.data)] : []));
    expect(['connection-lost', 'connection-stalled']).toContain(code);
    expect(received).toEqual(complete);
    return code;
  });
});

/** A server that answers a TLS client with something else. */
const startGarbler = async (bytes: Buffer, end: End) => {
  const server = createServer((socket) => socket.once('data', () => void play(socket, [bytes], end)));
  const { port, open } = await listen(server);
  return {
    host: `127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await Promise.all([...open].map(closed));
    },
  };
};

// The start of a ServerHello, an alert, and answers of a server without TLS.
const starts = ['160303007a0200007603035f', '15030300020228', '1403030001011703030013'];
const garbage: Arbitrary<Buffer> = fc.oneof(
  anyBytes(300),
  fc
    .tuple(fc.constantFrom(...starts), anyBytes(200))
    .map(([hex, more]) => Buffer.concat([Buffer.from(hex, 'hex'), more])),
  fc
    .tuple(fc.constantFrom('400 Bad Request', '200 OK', '101 Switching Protocols'), changes(2))
    .map(([status, all]) => changed(httpAnswer(status, Buffer.from(JSON.stringify(ticketFields('x')))), all)),
);
const garbled = fc.record({
  bytes: garbage,
  end: fc.constantFrom<End>('end', 'end', 'reset', 'stay'),
  stage: fc.constantFrom('ticket', 'handshake'),
});

// The answer of a server without TLS stops the feed. For other bytes, it depends on whether OpenSSL sees a TLS record.
const codesFor = (stage: string, bytes: Buffer, end: End): readonly string[] => {
  if (stage === 'handshake') return ['handshake-unreachable'];
  const isWholeHttp = end === 'end' && bytes.toString('latin1', 0, 5) === 'HTTP/';
  return [...(isWholeHttp ? [] : ['ticket-endpoint-unreachable']), 'ticket-endpoint-without-tls'];
};

describe(`bytes in place of TLS, with FUZZ_SEED=${seed}`, () => {
  const title = 'make the service unreachable, or show that it has no TLS';
  fuzz(title, 'bytes in place of TLS', 72, garbled, async ({ bytes, end, stage }) => {
    await using garbler = await startGarbler(bytes, end);
    const { host } = garbler;
    const ms = end === 'stay' ? 100 : 15_000;
    const body = Buffer.from(JSON.stringify(ticketFields(`wss://${host}/`)));
    const script = { ticket: { ...goodTicket, bytes: () => [httpAnswer('200 OK', body)] }, handshake: goodTicket };
    const options =
      stage === 'ticket' ? { baseUrl: `https://${host}`, ticketTimeoutMs: ms } : { handshakeTimeoutMs: ms };
    const { code } = await scripted.run(script, options);
    expect(codesFor(stage, bytes, end)).toContain(code);
    return code;
  });
});
