import fc from 'fast-check';
import { plantedKey, plantedTicket } from './failure-rules.js';

/** The secrets of a case, in the forms that a server may write. */
export const secrets = fc.constantFrom(
  plantedKey,
  plantedTicket,
  `Bearer ${plantedTicket}`,
  `x-api-key: ${plantedKey}`,
);
/** Random bytes, one for each character. */
export const latin1 = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const oddText = fc.oneof(
  secrets,
  latin1,
  fc.constantFrom('\x1b[2J', '\x9b31m', '\0', '\r', '\n', '\r\n folded', '', ' ', '\t', 'x'.repeat(17_000)),
);

/** Status lines, valid and invalid. */
export const statusLine = fc.oneof(
  fc
    .tuple(fc.oneof(fc.integer({ min: 100, max: 599 }), fc.nat(999)), oddText)
    .map(([status, phrase]) => `HTTP/1.1 ${String(status).padStart(3, '0')} ${phrase}`),
  fc.constantFrom(
    ...['', 'HTTP/1.1 200', 'HTTP/1.1 ', 'HTTP/1.0 200 OK', 'HTTP/2.0 200 OK', 'HTTP/0.9 200 OK', 'ICY 200 OK'],
    ...[
      'HTTP/1.1  200 OK',
      'HTTP/1.1\t200 OK',
      'HTTP/1.1 20 OK',
      'HTTP/1.1 2000 OK',
      'HTTP/1.1 -1 OK',
      'http/1.1 200 OK',
    ],
    ...['HTTP/1.1 2e2 OK', 'HTTP/1.1 101 Switching Protocols', 'GET / HTTP/1.1', '\x16\x03\x01\x02\x00\x01', '\r\n'],
  ),
);

/** Headers that change the meaning of an answer, invalid headers, many headers. */
export const oddHeaders = fc.oneof(
  fc.constantFrom(
    ...['Content-Length: 5', 'Content-Length: -1', 'Content-Length: 1e9', 'Content-Length: 99999999999999999999'],
    ...['Content-Length: 0x10', 'Content-Length: ', 'Content-Length: 3, 3', 'Content-Length: 1000000'],
    ...['Transfer-Encoding: chunked', 'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: identity'],
    ...[
      'Transfer-Encoding: chunked, chunked',
      'Transfer-Encoding : chunked',
      'Content-Encoding: br',
      'Connection: close',
    ],
    ...[
      'Connection: upgrade',
      'Upgrade: h2c',
      'Upgrade: websocket',
      'Location: http://127.0.0.1:1/',
      'Keep-Alive: timeout=-1',
    ],
    ...['Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=', 'Sec-WebSocket-Extensions: permessage-deflate'],
    ...['Sec-WebSocket-Protocol: ', 'Sec-WebSocket-Protocol: other', 'Sec-WebSocket-Protocol: mmp.trade-batch.v1, b'],
    ...['Date: x', 'Date: Thu, 01 Jan 1970 00:00:00 GMT', 'Retry-After: 5', 'no colon', ': no name', 'a b: c', 'É: x'],
  ),
  fc
    .tuple(fc.constantFrom('X-A', 'Set-Cookie', 'Location', 'Date', 'Retry-After', 'Sec-WebSocket-Protocol'), oddText)
    .map(([name, value]) => `${name}: ${value}`),
  fc.constantFrom(200, 3_000).map((times) => Array.from({ length: times }, (_, n) => `X-${n}: ${n}`).join('\r\n')),
);

/** Chunked bodies, valid and invalid. */
export const chunked = fc.constantFrom(
  '5\r\nhello\r\n0\r\n\r\n',
  '5;ext="\x1b"\r\nhello\r\n0\r\nTrailer: x\r\n\r\n',
  'ffffffffffffffffff\r\nhello',
  '-1\r\nx\r\n',
  'zz\r\n',
  '5\r\nhello',
  '0\r\n\r\n',
);
/** Informational answers before the final one. */
export const interim = fc.oneof(
  fc.constantFrom(
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n',
    'HTTP/1.1 102 \r\n\r\n',
  ),
  fc.constantFrom(20, 2_000).map((times) => 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(times)),
);
