import fc, { type Arbitrary } from 'fast-check';
import { weighted } from '../support/server-bytes.js';
import { type Change, changed, changes, cutAt, places } from './mutated.js';
import { acceptFor, type Answer, type End, plantedKey, plantedTicket } from './scripted.js';

/** Placeholders for values that depend on the request. */
const ACCEPT = '@ACCEPT@';
const LENGTH = '@LENGTH@';
export const WSS = '@WSS@';

/** A valid answer that the cases modify. */
export interface Right {
  readonly line: string;
  readonly headers: readonly string[];
  readonly body: string;
}

/** A random HTTP answer. Each character of its texts is one byte. */
export interface HttpBytes extends Right {
  readonly before: readonly string[];
  readonly changes: readonly Change[];
  readonly cuts: readonly number[];
  readonly end: End;
}

/** The answer that accepts a handshake, followed by a close frame. */
export const rightHandshake: Right = {
  line: 'HTTP/1.1 101 Switching Protocols',
  headers: [
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${ACCEPT}`,
    'Sec-WebSocket-Protocol: mmp.trade-batch.v1',
  ],
  body: '\x88\x02\x0f\xa1',
};

/** The answer to a ticket request with this body. */
export const rightTicket = (body: string): Right => ({
  line: 'HTTP/1.1 200 OK',
  headers: ['Content-Type: application/json', `Content-Length: ${LENGTH}`],
  body,
});

const anyOf = (texts: string): Arbitrary<string> => fc.constantFrom(...texts.split('|'));

/** The secrets of a case, in the forms that a server could write. */
const secrets = anyOf(`${plantedKey}|${plantedTicket}|Bearer ${plantedTicket}|x-api-key: ${plantedKey}`);
/** Random bytes, one for each character. */
const latin1 = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const oddText = fc.oneof(secrets, latin1, anyOf(`\x1b[2J|\x9b31m|\0|\r|\n|\r\n folded|| |\t|${'x'.repeat(17_000)}`));

const statusLine = fc.oneof(
  fc
    .tuple(fc.oneof(fc.integer({ min: 100, max: 599 }), fc.nat(999)), oddText)
    .map(([status, phrase]) => `HTTP/1.1 ${String(status).padStart(3, '0')} ${phrase}`),
  anyOf('|HTTP/1.1 200|HTTP/1.1 |HTTP/1.0 200 OK|HTTP/2.0 200 OK|HTTP/0.9 200 OK|ICY 200 OK|http/1.1 200 OK|\r\n'),
  anyOf('HTTP/1.1  200 OK|HTTP/1.1\t200 OK|HTTP/1.1 20 OK|HTTP/1.1 2000 OK|HTTP/1.1 -1 OK|HTTP/1.1 2e2 OK'),
  anyOf('HTTP/1.1 101 Switching Protocols|GET / HTTP/1.1|\x16\x03\x01\x02\x00\x01'),
);

/** Headers that change the meaning of an answer, invalid headers, many headers. */
const oddHeaders = fc.oneof(
  anyOf('5|-1|1e9|99999999999999999999|0x10||3, 3|1000000').map((length) => `Content-Length: ${length}`),
  anyOf('chunked|gzip, chunked|identity|chunked, chunked').map((encoding) => `Transfer-Encoding: ${encoding}`),
  anyOf('|other|mmp.trade-batch.v1, b').map((protocol) => `Sec-WebSocket-Protocol: ${protocol}`),
  anyOf('Connection: close|Connection: upgrade|Upgrade: h2c|Upgrade: websocket|Location: http://127.0.0.1:1/'),
  anyOf('Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=|Sec-WebSocket-Extensions: permessage-deflate'),
  anyOf('Keep-Alive: timeout=-1|Content-Encoding: br|Transfer-Encoding : chunked|no colon|: no name|a b: c|É: x'),
  anyOf('Date: x|Date: Thu, 01 Jan 1970 00:00:00 GMT|Retry-After: 5'),
  fc
    .tuple(anyOf('X-A|Set-Cookie|Location|Date|Retry-After|Sec-WebSocket-Protocol'), oddText)
    .map(([name, value]) => `${name}: ${value}`),
  fc.constantFrom(200, 3_000).map((times) => Array.from({ length: times }, (_, n) => `X-${n}: ${n}`).join('\r\n')),
);

const chunked = fc.oneof(
  anyOf('5\r\nhello\r\n0\r\n\r\n|5;ext="\x1b"\r\nhello\r\n0\r\nTrailer: x\r\n\r\n|ffffffffffffffffff\r\nhello'),
  anyOf('-1\r\nx\r\n|zz\r\n|5\r\nhello|0\r\n\r\n'),
);
/** Informational answers before the final one. */
const interim = fc.oneof(
  anyOf('HTTP/1.1 100 Continue\r\n\r\n|HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n|HTTP/1.1 102 \r\n\r\n'),
  fc.constantFrom(20, 2_000).map((times) => 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(times)),
);

const mostly = <T>(right: T, odd: Arbitrary<T>, weight: number): Arbitrary<T> =>
  weighted([weight, fc.constant(right)], [1, odd]);

/** Variants of a valid answer: another status line, more or fewer headers, another body, changed bytes, cut off. */
export const httpAround = ({ line, headers, body }: Right): Arbitrary<HttpBytes> =>
  fc.record({
    before: mostly([], fc.array(interim, { maxLength: 2 }), 4),
    line: mostly(line, statusLine, 2),
    headers: fc
      .tuple(
        fc.subarray([...headers], { minLength: headers.length - 1 }),
        fc.array(oddHeaders, { maxLength: 2 }),
        fc.boolean(),
      )
      .map(([some, odd, isFirst]) => (isFirst ? [...odd, ...some] : [...some, ...odd])),
    body: mostly(body, fc.oneof(latin1, chunked, secrets, fc.constant(`${body}HTTP/1.1 200 OK\r\n\r\n`)), 2),
    changes: mostly([], changes(3), 2),
    cuts: places,
    end: weighted([8, fc.constant<End>('end')], [1, fc.constantFrom<End>('reset', 'stay')]),
  });

/** Writes an answer for a request. */
export const written = ({
  before = [],
  line,
  headers,
  body,
  changes = [],
  cuts = [],
  end = 'end',
}: Right & Partial<HttpBytes>): Answer => ({
  end,
  bytes: (request, wssUrl) => {
    const length = body.replaceAll(WSS, wssUrl).length;
    const head = [line, ...headers, '', ''].join('\r\n').replace(ACCEPT, acceptFor(request));
    const whole = `${before.join('')}${head.replace(LENGTH, String(length))}${body}`;
    // Inserted after the changes, because a changed address could lead to another server on this machine.
    const bytes = changed(Buffer.from(whole, 'latin1'), changes).toString('latin1').replaceAll(WSS, wssUrl);
    return cutAt(Buffer.from(bytes, 'latin1'), cuts);
  },
});
