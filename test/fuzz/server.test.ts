/** @lane clock */
import { describe, expect, it } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { isUtf8 } from 'node:buffer';
import { Agent } from 'node:http';
import { gzipSync } from 'node:zlib';
import { character } from '../support/character.js';
import { expectedFailure } from '../support/failure-table.js';
import { cuts, serverBytes, weighted } from '../support/server-bytes.js';
import { closePayload, wsFrame } from '../support/wire.js';
import { ANSWER_MS, fuzz, seed } from './fuzz.js';
import { httpAround, type HttpBytes, rightHandshake, rightTicket, written, WSS } from './http-bytes.js';
import { type Change, changed, changes, cutAt, places } from './mutated.js';
import {
  acceptFor,
  type Answer,
  type End,
  goodHead,
  goodTicket,
  httpAnswer,
  plantedKey,
  plantedTicket,
  type Ran,
  type Script,
  scriptedServer,
  ticketFields,
} from './scripted.js';

const scripted = scriptedServer();
const run = (stage: string, answer: Answer, options = {}) => {
  const replaced = written(rightHandshake);
  const script =
    stage === 'ticket' ? { ticket: answer, handshake: replaced } : { ticket: goodTicket, handshake: answer };
  return scripted.run(script, options);
};

/** Short timeouts for a silent server, long ones for one that ends the connection. */
const deadlines = ({ end }: HttpBytes) => {
  const ms = end === 'stay' ? 60 : ANSWER_MS;
  return { ticketTimeoutMs: ms, handshakeTimeoutMs: ms };
};

const tickets = httpAround(rightTicket(JSON.stringify(ticketFields(WSS))));
const handshakes = httpAround(rightHandshake);

describe(`HTTP answers of a hostile server, with FUZZ_SEED=${seed}`, () => {
  const ofTicket = 'to a ticket request end in a ticket or a clear failure';
  fuzz(ofTicket, 'HTTP heads of the ticket response', 72, tickets, async (http) => {
    const { code, failure, requests } = await run('ticket', written(http), deadlines(http));
    // The deadline of the handshake may pass before the handshake starts.
    if (requests.length === 1 && http.end !== 'stay') expect(failure.stage).toBe('ticket');
    return code;
  });

  const ofHandshake = 'to a handshake end in a connection or a clear failure';
  fuzz(ofHandshake, 'HTTP heads of the handshake', 72, handshakes, async (http) => {
    const { bytes, end } = written(http);
    let isAccepted = false;
    const answer: Answer = {
      end,
      bytes: (request, wssUrl) => {
        const pieces = bytes(request, wssUrl);
        const sent = Buffer.concat(pieces).toString('latin1');
        isAccepted = sent.includes(acceptFor(request)) && sent.includes('mmp.trade-batch.v1');
        return pieces;
      },
    };
    const { code, failure } = await run('handshake', answer, { ...deadlines(http), ticketTimeoutMs: ANSWER_MS });
    expect(failure.stage).not.toBe('ticket');
    // Only a valid answer to this handshake opens a connection.
    if (failure.stage === 'stream') expect(isAccepted).toBe(true);
    return code;
  });

  it.each([
    ['the subprotocol in capitals', 'mmp.trade-batch.v1', 'MMP.TRADE-BATCH.V1', 'subprotocol-mismatch'],
    ['two subprotocols', 'mmp.trade-batch.v1', 'mmp.trade-batch.v1, b', 'subprotocol-mismatch'],
    ['another upgrade', 'Upgrade: websocket', 'Upgrade: h2c', 'handshake-failed'],
    ['an extension', 'Upgrade: websocket', 'Sec-WebSocket-Extensions: permessage-deflate\r\n$&', 'handshake-failed'],
  ])('to a handshake with %s open no connection', async (_what, part, instead, expected) => {
    const bytes = (request: string) => [Buffer.from(goodHead(request).replace(part, instead))];
    const { code, failure } = await run('handshake', { bytes, end: 'end' });
    expect([code, failure.verdict]).toEqual([expected, 'stop']);
  });
});

const codes = weighted(
  [3, fc.constantFrom(1000, 1001, 1006, 1008, 1009, 1011, 1013, 4000, 4001, 4002, 4003, 4003)],
  [1, fc.nat(65_535)],
);
const known = fc.constantFrom('access expired', 'access revoked', 'connection replaced', 'server shutdown', '');
const pieces = fc.oneof(
  known,
  fc.constantFrom(plantedKey, plantedTicket, plantedKey.toUpperCase(), `Bearer ${plantedTicket}`),
  fc.constantFrom('\x1b]0;title\x07', '\x1b[2J', '\r\nlevel=info forged', '\0', '\u202e', '\u2028', '\u009b31m', '$&"'),
  fc.string({ unit: character, maxLength: 20 }),
);
const anyBytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes));
const reasons = weighted(
  [2, known.map((reason) => Buffer.from(reason))],
  [4, fc.array(pieces, { maxLength: 3 }).map((some) => Buffer.from(some.join('')))],
  [1, anyBytes(123)],
);

// RFC 6455, 7.4: the codes that a close frame may contain.
const maySend = (code: number): boolean =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);

const redacted = (reason: string): string =>
  [plantedKey, plantedTicket].reduce((text, secret) => text.replace(new RegExp(secret, 'gi'), '[secret]'), reason);

describe(`a close frame of a hostile server, with FUZZ_SEED=${seed}`, () => {
  const title = 'is a failure of the table with the reason as sent, without secrets; or is an invalid frame';
  fuzz(title, 'close reasons', 96, fc.tuple(codes, reasons), async ([closeCode, bytes]) => {
    const reason = bytes.subarray(0, 123);
    const frame = wsFrame(8, closePayload(closeCode, reason));
    const answer = (request: string) => [Buffer.concat([Buffer.from(goodHead(request)), frame])];
    const { code, failure } = await run('handshake', { bytes: answer, end: 'end' });
    const isRight = maySend(closeCode) && isUtf8(reason);
    const expected = expectedFailure({ stage: 'stream', closeCode, reason: reason.toString() });
    expect(code).toBe(isRight ? expected.code : 'invalid-frame');
    expect(failure.closeCode).toBe(isRight ? closeCode : undefined);
    if (isRight) expect(failure.reason).toBe(redacted(reason.toString()));
    return code;
  });
});

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
const runStream = ({ bytes, cut, isWithHead, isOfAgent, end }: Stream) => {
  const handshake: Answer = {
    end,
    bytes: (request) => {
      const head = Buffer.from(goodHead(request));
      return isWithHead ? cut(Buffer.concat([head, bytes])) : [head, ...cut(bytes)];
    },
  };
  const idleTimeoutMs = end === 'stay' ? 30 : ANSWER_MS;
  const agent = isOfAgent && { agent: new Agent() };
  const options = { ticketTimeoutMs: ANSWER_MS, handshakeTimeoutMs: ANSWER_MS, idleTimeoutMs, maxFrameBytes, ...agent };
  return scripted.run({ ticket: goodTicket, handshake }, options);
};

const delivery = { cut: cuts, isWithHead: fc.boolean(), isOfAgent: fc.boolean() };
const streams: Arbitrary<Stream> = fc.record({
  ...delivery,
  bytes: weighted([4, serverBytes], [1, anyBytes(400)]),
  end: weighted([8, fc.constantFrom<End>('end', 'reset')], [1, fc.constant<End>('stay')]),
});
const rightStreams = fc.record({
  ...delivery,
  payloads: fc.array(anyBytes(200), { maxLength: 30 }),
  keep: fc.double({ min: 0, max: 1, noNaN: true }),
  end: fc.constantFrom<End>('end', 'stay'),
});

describe(`WebSocket bytes of a hostile server, with FUZZ_SEED=${seed}`, () => {
  fuzz('end in a clear failure of the stream', 'WebSocket bytes', 96, streams, async (stream) => {
    const { code, failure, events } = await runStream(stream);
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
    const { code, events } = await runStream({ ...rest, bytes });
    let left = bytes.length;
    const complete = payloads.filter((_, i) => (left -= frames[i]?.length ?? 0) >= 0);
    const received = events.flatMap((event) => (event.type === 'frame' ? [Buffer.from(event.data)] : []));
    expect(['connection-lost', 'connection-stalled']).toContain(code);
    expect(received).toEqual(complete);
    return code;
  });
});

/** Accepts the handshake and sends these bytes. */
const sending = (frame: string): Answer => ({
  end: 'end',
  bytes: (request) => [Buffer.concat([Buffer.from(goodHead(request)), Buffer.from(frame, 'latin1')])],
});
const replaced = sending('\x88\x02\x0f\xa1');

/** A 200 with this body and valid framing. */
const answering = (
  body: (wssUrl: string) => Buffer,
  headers: readonly string[] = [],
  cuts: readonly number[] = [],
): Script => ({
  ticket: { end: 'stay', bytes: (_request, wssUrl) => cutAt(httpAnswer('200 OK', body(wssUrl), headers), cuts) },
  handshake: replaced,
});

const withAddress = (body: Buffer, wssUrl: string): Buffer =>
  Buffer.from(body.toString('latin1').replaceAll(WSS, wssUrl), 'latin1');
const good = (wssUrl: string) => Buffer.from(JSON.stringify(ticketFields(wssUrl)));

/** What can come of an accepted ticket: the handshake sends it, or nothing is listening at its address. */
const afterTicket = ['connection-replaced', 'subprotocol-mismatch', 'handshake-unreachable'];

const isTaken = ({ code, failure, requests }: Ran, body: string): boolean => {
  if (code === 'invalid-ticket') {
    expect(failure).toMatchObject({ stage: 'ticket', verdict: 'stop' });
    return false;
  }
  expect(afterTicket).toContain(code);
  // The handshake sends the body's ticket, and only the ticket request sends the key.
  const { ticket } = JSON.parse(body) as { ticket: string };
  for (const handshake of requests.slice(1)) {
    expect(/^authorization: (.*)\r$/im.exec(handshake)?.[1]).toBe(`Bearer ${ticket}`);
    expect(handshake).not.toContain(plantedKey);
  }
  return true;
};

/** A long or deeply nested body: an opening and a sending text, repeated. */
interface Nested {
  readonly open: string;
  readonly shut: string;
  readonly times: number;
}

const nested: Arbitrary<Nested> = fc.record({
  open: fc.constantFrom('[', '{"a":', ' ', '"'),
  shut: fc.constantFrom(']', '}', ''),
  times: fc.constantFrom(1, 10, 1_000, 10_000, 65_535, 65_536, 1_000_000),
});
const others: Arbitrary<Buffer | Nested> = fc.oneof(
  anyBytes(300),
  fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
  fc.constantFrom('', ' ', 'null', '[]', '""', 'NaN', '{}', '{"__proto__":{}}').map((text) => Buffer.from(text)),
  // Short bodies, because a parser's error quotes the text it has read.
  fc
    .constantFrom(plantedKey, plantedTicket, `{"ticket":"${plantedTicket}`, `"${plantedTicket}"x`)
    .map((text) => Buffer.from(text)),
  nested,
);

const bodyOf = (what: Buffer | Nested | readonly Change[], wssUrl: string): Buffer => {
  if (Buffer.isBuffer(what)) return what;
  return 'open' in what
    ? Buffer.from(`${what.open.repeat(what.times)}1${what.shut.repeat(what.times)}`)
    : // The address stays unchanged, because it could lead to another server on this machine.
      withAddress(changed(good(WSS), what), wssUrl);
};

/** Changes to a whole valid body, and whether the result is a ticket. */
const wrappings: readonly (readonly [string, (body: Buffer) => Buffer, boolean])[] = [
  ['none', (body) => body, true],
  ['a byte order mark', (body) => Buffer.concat([Buffer.from('\ufeff'), body]), true],
  ['bad UTF-8 in an unknown field', (body) => Buffer.from(`{"x":"\xff\xc0",${String(body).slice(1)}`, 'latin1'), true],
  ['bad UTF-8 in the ticket', (body) => Buffer.from(String(body).replace('"ticket":"', '$&\xff'), 'latin1'), false],
  ['a second ticket, which is invalid', (body) => Buffer.from(`${String(body).slice(0, -1)},"ticket":5}`), false],
  ['gzip', (body) => gzipSync(body), false],
  ['more bytes than any ticket has', (body) => Buffer.concat([body, Buffer.alloc(70_000, ' ')]), false],
];

describe(`the body of a ticket response, with FUZZ_SEED=${seed}`, () => {
  const anyBody = fc.tuple(fc.oneof(changes(4), others), places);
  fuzz('is a ticket or a clear failure for any bytes', 'ticket bytes', 72, anyBody, async ([change, cuts]) => {
    let body: Buffer = Buffer.alloc(0);
    const ran = await scripted.run(answering((wssUrl) => (body = bodyOf(change, wssUrl)), [], cuts));
    isTaken(ran, String(body));
    return ran.code;
  });

  it.each(wrappings)('with a change of the whole body: %s', async (_what, wrap, isTicket) => {
    for (const headers of [[], ['Content-Encoding: gzip'], ['Content-Type: text/html']]) {
      const ran = await scripted.run(answering((wssUrl) => wrap(good(wssUrl)), headers));
      expect(ran.code).toBe(isTicket ? 'connection-replaced' : 'invalid-ticket');
    }
  });
});
