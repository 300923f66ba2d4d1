import { Agent as HttpsAgent } from 'node:https';
import type { TradeFeedOptions } from '../../src/index.js';
import type { CertificateProblem } from '../../src/protocol/failures/meanings.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import type { Observed } from '../support/failure-table.js';
import { plantedKey } from '../support/feed.js';
import { accept, binary, close, issue, refuse, refuseHandshake } from '../support/wire.js';
import { switching, text, type WireScript, wsFrame } from '../support/wire.js';

/** One way for an attempt to end on the wire. The failure table of test/support says what it means. */
export interface Row extends WireScript, Observed {
  readonly what: string;
  readonly retryAfterMs?: number;
  readonly options?: TradeFeedOptions;
}

type Script = Omit<Row, 'stage' | 'what' | 'status' | 'code'>;

/** A row, with the status observed or the code that the client sets. */
const row = (stage: Row['stage'], what: string, seen: number | string, script: Script = {}): Row => ({
  stage,
  what,
  ...(typeof seen === 'number' ? { status: seen } : { code: seen }),
  ...script,
});
const refusal = (stage: 'ticket' | 'handshake', status: number, seconds?: number): Row => {
  const headers = seconds ? { 'retry-after': `${seconds}` } : { location: '/elsewhere' };
  return row(stage, `${status}${seconds ? ' with Retry-After' : ''}`, status, {
    ...(stage === 'ticket' ? { ticket: [refuse(status, headers)] } : { handshake: [refuseHandshake(status, headers)] }),
    ...(seconds && { retryAfterMs: seconds * 1_000 }),
  });
};
const badTicket = (field: string, value: unknown): Row =>
  row('ticket', `200 with a bad ${field}: ${JSON.stringify(value)}`, 'invalid-ticket', {
    ticket: [issue({ [field]: value })],
  });
const closed = (closeCode: number | undefined, reason: string): Row => ({
  stage: 'stream',
  what: `${closeCode ?? 'no code'} ${reason}`,
  closeCode: closeCode ?? 1005,
  reason,
  handshake: [accept(text('frame'), binary(Buffer.from([1, 0, 255])), text(''), close(closeCode, reason))],
});
const badFrame = (what: string, frame: Buffer, options: TradeFeedOptions = {}): Row =>
  row('stream', what, 'invalid-frame', { handshake: [accept(text('frame'), frame)], options });

const silence = (): void => undefined;
const sealed = new Error('the vault is sealed');
const notPinned = new Error('not pinned');
const throwing = (thrown: Error) => (): never => {
  throw thrown;
};
export const untrusted = await certificateFor();
const otherName = await certificateFor('elsewhere.example');
const [dawn, noon, dusk] = ['2001-01-01', '2011-01-01', '2101-01-01'].map((day) => new Date(day)) as [Date, Date, Date];
const expired = await certificateFor(undefined, { notBeforeDate: dawn, notAfterDate: noon });
const notYetValid = await certificateFor(undefined, { notBeforeDate: dusk, notAfterDate: new Date('2102-01-01') });

const checkedBy = (checkServerIdentity: () => Error): TradeFeedOptions => ({
  tls: { ca: untrusted.cert, checkServerIdentity },
});

/** Certificates, each with options that refuse it, and the problem if another CA can't help. */
export const refusedCertificates: readonly (readonly [
  what: string,
  tls: Certificate,
  options: TradeFeedOptions,
  certificate: CertificateProblem | undefined,
])[] = [
  ['an unknown CA', untrusted, {}, undefined],
  ['a certificate for another host', otherName, { tls: { ca: otherName.cert } }, 'host'],
  ['an expired certificate', expired, { tls: { ca: expired.cert } }, 'date'],
  ["a certificate that isn't valid yet", notYetValid, { tls: { ca: notYetValid.cert } }, 'date'],
  ['a certificate that checkServerIdentity refuses', untrusted, checkedBy(() => notPinned), undefined],
  ['a checkServerIdentity that throws', untrusted, checkedBy(throwing(notPinned)), undefined],
];

const lost = 'ticket-endpoint-unreachable';
const noKey = 'api-key-unavailable';
const noHandshake = 'handshake-unreachable';
const otherSubprotocol = 'subprotocol-mismatch';

export const rows: readonly Row[] = [
  ...[401, 403, 422, 429, 503, 408, 500, 307, 404].map((status) => refusal('ticket', status)),
  refusal('ticket', 429, 7),
  refusal('ticket', 503, 3),
  row('ticket', 'reset', lost, { ticket: [(response) => response.socket?.destroy()] }),
  row('ticket', 'an answer that is not HTTP', lost, {
    ticket: [(response) => response.socket?.end(`garbage ${plantedKey}\r\n\r\n`)],
  }),
  row('ticket', 'an unreachable port', lost, { options: { baseUrl: 'http://127.0.0.1:1' } }),
  row('ticket', 'no answer', lost, { ticket: [silence], options: { ticketTimeoutMs: 30 } }),
  row('ticket', 'an incomplete body', lost, {
    ticket: [
      (response) => {
        response.writeHead(200, { 'content-length': '900' }).write('{"ticket":', () => response.socket?.destroy());
      },
    ],
  }),
  ...refusedCertificates.map(([what, tls, options, certificate]) =>
    row('ticket', what, 'untrusted-certificate', { tls, options, ...(certificate && { certificate }) }),
  ),
  row('ticket', 'a key function that rejects', noKey, { options: { apiKey: () => Promise.reject(sealed) } }),
  row('ticket', 'a key function that never answers', noKey, {
    options: { apiKey: () => new Promise<string>(silence), ticketTimeoutMs: 30 },
  }),
  row('ticket', 'a key function that returns no key', 'invalid-options', { options: { apiKey: () => '' } }),
  row('ticket', '200 without JSON', 'invalid-ticket', { ticket: [refuse(200, {}, 'planted-ticket-1')] }),
  row('ticket', '200 with an endless body', 'invalid-ticket', { ticket: [refuse(200, {}, ' '.repeat(70_000))] }),
  badTicket('ticket', ''),
  badTicket('wss_url', 'ws://feed.example/ws'),
  ...[400, 401, 503, 500, 408, 429, 302].map((status) => refusal('handshake', status)),
  refusal('handshake', 503, 4),
  row('handshake', 'a 101 with a wrong Sec-WebSocket-Accept', 101, {
    handshake: [(peer) => peer.socket.write(switching(peer).replace(/Accept: .*/, 'Accept: bm8='))],
  }),
  row('handshake', 'no subprotocol in the answer', otherSubprotocol, {
    handshake: [(peer) => peer.socket.write(switching(peer, ''))],
  }),
  row('handshake', 'another subprotocol in the answer', otherSubprotocol, {
    handshake: [(peer) => peer.socket.write(switching(peer, 'mmp.other.v1'))],
  }),
  row('handshake', 'reset', noHandshake, { handshake: [({ socket }) => socket.destroy()] }),
  row('handshake', 'no answer', noHandshake, { handshake: [silence], options: { handshakeTimeoutMs: 30 } }),
  row('handshake', 'an unreachable port', noHandshake, { ticket: [issue({ wss_url: 'ws://127.0.0.1:1/ws' })] }),
  row('handshake', 'an agent for another scheme', 'invalid-options', { options: { agent: new HttpsAgent() } }),
  row('handshake', 'a ticket that expires in the handshake', 'ticket-expired', {
    ticket: [issue({ expires_at: '2031-01-01T00:00:00.05Z' }, { date: 'Wed, 01 Jan 2031 00:00:00 GMT' })],
    handshake: [silence],
  }),
  closed(4001, 'connection replaced'),
  closed(1008, 'server push only'),
  closed(4003, 'access expired'),
  closed(4003, 'access revoked'),
  closed(4003, 'something else'),
  // The contract's reasons aren't secret, although part of one may equal a secret.
  { ...closed(4003, 'access expired'), what: 'e, the ticket', ticket: [issue({ ticket: 'e' })] },
  closed(1013, 'client too slow'),
  closed(1001, 'server shutdown'),
  closed(1000, 'bye'),
  closed(undefined, ''),
  closed(1011, 'server error'),
  closed(4999, 'unknown'),
  {
    stage: 'stream',
    what: 'reset',
    closeCode: 1006,
    handshake: [
      (peer, wire, n) => {
        accept(text('frame'))(peer, wire, n);
        for (const socket of wire.open) if (socket === peer.socket) socket.resetAndDestroy();
      },
    ],
  },
  {
    stage: 'stream',
    what: 'an end without a close frame',
    closeCode: 1006,
    handshake: [(peer) => void peer.socket.end(switching(peer))],
  },
  row('stream', 'silence, and no answer to a ping', 'connection-stalled', {
    handshake: [accept(text('frame'))],
    options: { idleTimeoutMs: 20 },
  }),
  badFrame('a frame over maxFrameBytes', text('x'.repeat(101)), { maxFrameBytes: 100 }),
  badFrame('text that is not UTF-8', wsFrame(1, Buffer.from([0xc3, 0x28]))),
  badFrame('a reserved bit', Buffer.from([0xc1, 0x01, 0x78])),
];
