import fc, { type Arbitrary } from 'fast-check';
import { chunked, interim, latin1, oddHeaders, secrets, statusLine } from './http-pieces.js';
import { type Change, changed, changes, cutAt, places } from './mutated.js';
import { acceptFor, type Answer, type End } from './answers.js';

/** Placeholders for values that depend on the request. */
const ACCEPT = '@ACCEPT@';
const LENGTH = '@LENGTH@';
const WSS = '@WSS@';

/** A random HTTP answer. Each character of its texts is one byte. */
export interface HttpBytes {
  readonly before: readonly string[];
  readonly line: string;
  readonly headers: readonly string[];
  readonly body: string;
  readonly changes: readonly Change[];
  readonly cuts: readonly number[];
  readonly end: End;
}

/** A valid answer, which the cases change. */
export interface Right {
  readonly line: string;
  readonly headers: readonly string[];
  readonly body: string;
}

/** The answer that accepts a handshake, and a close frame after it. */
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

const mostly = <T>(right: T, odd: Arbitrary<T>, weight: number): Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(right), weight }, { arbitrary: odd, weight: 1 });

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
    end: fc.oneof(
      { arbitrary: fc.constant('end' as const), weight: 8 },
      { arbitrary: fc.constantFrom('reset' as const, 'stay' as const), weight: 1 },
    ),
  });

/** Writes an answer for a request. */
export const written = ({ before, line, headers, body, changes: all, cuts, end }: HttpBytes): Answer => ({
  end,
  bytes: (request, wssUrl) => {
    const length = body.replaceAll(WSS, wssUrl).length;
    const head = [line, ...headers, '', ''].join('\r\n').replace(ACCEPT, acceptFor(request));
    const whole = `${before.join('')}${head.replace(LENGTH, String(length))}${body}`;
    // Inserted after the changes, because a changed address could be that of another server on this machine.
    const bytes = changed(Buffer.from(whole, 'latin1'), all).toString('latin1').replaceAll(WSS, wssUrl);
    return cutAt(Buffer.from(bytes, 'latin1'), cuts);
  },
});
