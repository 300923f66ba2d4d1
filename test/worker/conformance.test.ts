import { describe, expect, it } from '@jest/globals';
import type { FeedEvent, TradeFeedError, TradeFeedOptions } from '../../src/index.js';
import { certificateFor } from '../support/certificate.js';
import { optionsFor, outcomeOf } from '../support/feed.js';
import {
  accept,
  binary,
  close,
  type HandshakeStep,
  issue,
  refuse,
  refuseHandshake,
  startWire,
  switching,
  text,
  type WireScript,
  wsFrame,
} from '../support/wire.js';

/** Everything a service can do, with each status and close code. The events and the error are the same on both threads. */
interface Row extends WireScript {
  readonly what: string;
  readonly options?: TradeFeedOptions;
}

const silence = (): void => undefined;
const reset: HandshakeStep = (peer, wire) => {
  accept(text('frame'))(peer, wire, 1);
  for (const socket of wire.open) if (socket === peer.socket) socket.resetAndDestroy();
};
const certificate = await certificateFor();
const closing = (code: number | undefined, reason = ''): Row => ({
  what: `close code ${code ?? 'none'} ${reason}`,
  handshake: [accept(text('frame'), binary(Buffer.from([1, 0, 255])), text(''), close(code, reason))],
});

const rows: readonly Row[] = [
  ...[401, 403, 422, 429, 503, 408, 500, 301, 204, 404].map((status) => ({
    what: `ticket ${status}`,
    ticket: [refuse(status, { location: '/elsewhere' })],
  })),
  { what: 'ticket 429 with Retry-After', ticket: [refuse(429, { 'retry-after': '7' })] },
  { what: 'no ticket', ticket: [issue({ ticket: '' })] },
  { what: 'a body that is not JSON', ticket: [refuse(200, {}, 'planted-ticket-1')] },
  { what: 'no answer to the ticket request', ticket: [silence], options: { ticketTimeoutMs: 30 } },
  { what: 'an unreachable ticket endpoint', options: { baseUrl: 'http://127.0.0.1:1' } },
  ...[400, 401, 503, 500, 302, 200, 404, 408, 429].map((status) => ({
    what: `handshake ${status}`,
    handshake: [refuseHandshake(status, { location: '/elsewhere' })],
  })),
  { what: 'handshake 429 with Retry-After', handshake: [refuseHandshake(429, { 'retry-after': '7' })] },
  { what: 'another subprotocol', handshake: [(peer) => peer.socket.write(switching(peer, 'mmp.other.v1'))] },
  { what: 'no answer to the handshake', handshake: [silence], options: { handshakeTimeoutMs: 30 } },
  { what: 'an unreachable wss_url', ticket: [issue({ wss_url: 'ws://127.0.0.1:1/ws' })] },
  {
    what: 'a ticket that is expired on arrival by its Date',
    ticket: [issue({ expires_at: '2031-01-01T00:00:00Z' }, { date: 'Wed, 01 Jan 2031 00:00:00 GMT' })],
    handshake: [refuseHandshake(401)],
  },
  {
    what: 'a ticket that expires in the handshake',
    ticket: [issue({ expires_at: '2031-01-01T00:00:00.05Z' }, { date: 'Wed, 01 Jan 2031 00:00:00 GMT' })],
    handshake: [silence],
  },
  closing(4001, 'connection replaced'),
  closing(1008, 'server push only'),
  closing(4003, 'access expired'),
  closing(4003, 'access revoked'),
  closing(4003, 'something else'),
  closing(1013, 'client too slow'),
  closing(1001, 'server shutdown'),
  closing(1000, 'bye'),
  closing(1011, 'server error'),
  closing(4999, 'unknown'),
  closing(undefined),
  { what: 'a reset', handshake: [reset] },
  { what: 'silence', handshake: [accept(text('frame'))], options: { idleTimeoutMs: 20 } },
  { what: 'a frame that is too large', handshake: [accept(text('x'.repeat(101)))], options: { maxFrameBytes: 100 } },
  { what: 'text that is not UTF-8', handshake: [accept(text('frame'), wsFrame(1, Buffer.from([0xc3, 0x28])))] },
  { what: 'a reserved opcode', handshake: [accept(wsFrame(3, 'x'))] },
  { what: 'an unknown CA', tls: certificate },
  {
    what: 'a private CA',
    tls: certificate,
    options: { tls: { ca: certificate.cert } },
    handshake: [accept(close(4001))],
  },
  {
    what: 'a private CA as a Buffer, among others',
    tls: certificate,
    options: { tls: { ca: [Buffer.from(certificate.cert)] } },
    handshake: [accept(close(4001))],
  },
  {
    what: 'a checkServerIdentity that refuses',
    tls: certificate,
    options: { tls: { ca: certificate.cert, checkServerIdentity: () => new Error('not pinned') } },
  },
  {
    what: 'a checkServerIdentity that throws a string',
    tls: certificate,
    options: {
      tls: {
        ca: certificate.cert,
        checkServerIdentity: () => {
          // eslint-disable-next-line @typescript-eslint/only-throw-error -- a user may
          throw 'not pinned';
        },
      },
    },
  },
  {
    what: 'a checkServerIdentity that pins the certificate',
    tls: certificate,
    options: {
      tls: {
        ca: certificate.cert,
        checkServerIdentity: (host, { raw }) =>
          host === '127.0.0.1' && Buffer.isBuffer(raw) && certificate.cert.includes(raw.toString('base64').slice(0, 64))
            ? undefined
            : new Error('not pinned'),
      },
    },
    handshake: [accept(close(4001))],
  },
  { what: 'a key from a function', options: { apiKey: () => 'planted-key' }, handshake: [accept(close(4001))] },
  {
    what: 'a key from an async function',
    options: { apiKey: () => Promise.resolve('planted-key') },
    ticket: [refuse(403)],
  },
  { what: 'a function that returns an empty key', options: { apiKey: () => '' } },
  { what: 'a function that returns no string', options: { apiKey: () => ({}) as string } },
  { what: 'a key function that rejects', options: { apiKey: () => Promise.reject(new Error('the vault is sealed')) } },
  {
    what: 'a key function that never answers',
    options: { apiKey: () => new Promise<string>(silence), ticketTimeoutMs: 30 },
  },
  { what: 'a verdict of classify', options: { classify: () => 'stop' }, ticket: [refuse(500)] },
  { what: 'an invalid verdict of classify', options: { classify: () => 'maybe' as never }, ticket: [refuse(500)] },
  { what: 'the verdict of the table', options: { classify: (_, verdict) => verdict }, ticket: [refuse(403)] },
];

// The wait is so long that the second attempt is not observed.
const noHurry = { initialDelayMs: 5_000, maxDelayMs: 5_000, jitter: 'none' } as const;

// Removes the fields that depend on a clock or on the machine.
const timeless = ({ endedAt: _, uptimeMs: __, ...fields }: Record<string, unknown>) => fields;
const comparable = (failure: TradeFeedError | undefined): unknown =>
  failure && {
    ...timeless(failure.toJSON()),
    isError: failure instanceof Error,
    kind: failure.constructor.name,
    cause: causeOf(failure.cause),
    previous: comparable(failure.previous),
  };
const causeOf = (cause: unknown): unknown =>
  cause instanceof Error
    ? { name: cause.name, message: cause.message, code: (cause as { code?: unknown }).code }
    : cause;
const eventOf = (event: FeedEvent): unknown => {
  if (event.type === 'frame')
    return { ...event, data: event.data.toString('latin1'), receivedAt: typeof event.receivedAt };
  if (event.type === 'disconnected' || event.type === 'stopped')
    return { type: event.type, failure: comparable(event.failure) };
  const facts: Record<string, unknown> = { ...event };
  for (const name of ['at', 'expiresAt']) Reflect.deleteProperty(facts, name);
  return facts;
};

// Only a worker sends watermarks.
const isNoWatermark = ({ type }: FeedEvent): boolean => type !== 'watermark';

const seen = async ({ options, ...script }: Row, receiveIn: 'main' | 'worker') => {
  await using wire = await startWire(script);
  const { failure, goesOn, events } = await outcomeOf(optionsFor(wire, { ...options, receiveIn, backoff: noHurry }));
  const text = JSON.stringify(
    { failure: comparable(failure), goesOn, events: events.filter(isNoWatermark).map(eventOf) },
    null,
    1,
  );
  // Each wire has its own port.
  return text.replaceAll(/127\.0\.0\.1:\d+/g, 'here');
};

describe('a feed in a worker', () => {
  it.each(rows)('emits the same as a feed on this thread: $what', async (row) => {
    const [here, there] = await Promise.all([seen(row, 'main'), seen(row, 'worker')]);
    expect(there).toBe(here);
  });
});
