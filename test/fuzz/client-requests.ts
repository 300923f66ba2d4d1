import fc, { type Arbitrary } from 'fast-check';
import { handshakeLines } from '../testing/bare-client.js';
import { changed, changes } from './mutated.js';

/** Where a request carries the API key. */
const KEY = '@KEY@';

/** A well-formed request, with the status of its answer. */
export interface Request {
  readonly line: string;
  readonly headers: readonly string[];
  readonly body: string;
  readonly status: number;
}

const ticketRequest = fc
  .tuple(
    fc.constantFrom([KEY, true] as const, ['nobody', false] as const, ['', false] as const),
    fc.constantFrom<[string, number]>(
      ['', 200],
      ['{}', 200],
      ['{"feed":"raw"}', 200],
      ['{"feed":"RAW"}', 422],
      ['[]', 422],
      ['{"feed":', 422],
      ['\xff\xfe', 422],
      ['['.repeat(8_000), 422],
    ),
  )
  .map(([[key, isKnown], [body, status]]) => ({
    line: 'POST /v1/wss/tickets HTTP/1.1',
    headers: [`X-API-Key: ${key}`, 'Content-Type: application/json', `Content-Length: ${body.length}`],
    body,
    status: isKnown ? status : 401,
  }));

const elsewhere = fc
  .constantFrom<[string, number]>(
    ['GET /v1/wss/tickets', 405],
    ['DELETE /v1/wss/tickets?x', 405],
    ['GET /ws', 426],
    ['PUT /ws', 405],
    ['GET /', 404],
    ['GET //v1/wss/tickets', 404],
    [`GET /${'a'.repeat(10_000)}`, 404],
    ['OPTIONS *', 404],
    ['GET http://127.0.0.1/ws', 404],
  )
  .map(([line, status]) => ({ line: `${line} HTTP/1.1`, headers: [], body: '', status }));

/** Well-formed requests. */
export const requests: Arbitrary<readonly Request[]> = fc.array(fc.oneof(ticketRequest, elsewhere), {
  minLength: 1,
  maxLength: 6,
});

/** The request that ends a connection. */
export const last: Request = { line: 'GET /last HTTP/1.1', headers: ['Connection: close'], body: '', status: 404 };

/** Writes several requests, and then the last one. */
export const bytesOf = (all: readonly Request[], apiKey: string): Buffer =>
  Buffer.from(
    [...all, last]
      .map(({ line, headers, body }) => [line, 'Host: x', ...headers, '', body].join('\r\n'))
      .join('')
      .replaceAll(KEY, apiKey),
    'latin1',
  );

const handshake = (ticket: string, key: string): string =>
  [...handshakeLines(ticket, { 'Sec-WebSocket-Key': key }), '', ''].join('\r\n');

/** Random bytes from a client. */
export const garbage: Arbitrary<Buffer> = fc.oneof(
  fc.tuple(requests, changes(5)).map(([all, change]) => changed(bytesOf(all, 'nobody'), change)),
  fc
    .tuple(fc.string({ maxLength: 40 }), fc.constantFrom('dGhlIHNhbXBsZSBub25jZQ==', '', 'short'), changes(5))
    .map(([ticket, key, change]) => changed(Buffer.from(handshake(ticket, key)), change)),
  // A handshake sent before the previous answer.
  requests.map((all) =>
    Buffer.concat([bytesOf(all, 'nobody'), Buffer.from(handshake('ticket', 'dGhlIHNhbXBsZSBub25jZQ=='))]),
  ),
  fc
    .tuple(requests, fc.nat(3_000))
    .map(([all, n]) => Buffer.from(`${String(bytesOf(all, 'x')).slice(0, 40)}X: ${'y'.repeat(n * 10)}`)),
  fc.constantFrom(100, 3_000).map((n) => Buffer.from(`GET /ws HTTP/1.1\r\n${'A: b\r\n'.repeat(n)}\r\n`)),
  fc
    .constantFrom('CONNECT x:1 HTTP/1.1\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00')
    .map((text) => Buffer.from(text, 'latin1')),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
);
