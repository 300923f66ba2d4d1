import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { gzipSync } from 'node:zlib';
import { plantedKey, plantedTicket } from './failure-rules.js';
import { fuzz, seed, timeoutFor } from './fuzz.js';
import { type Change, changed, changes, cutAt, places } from './mutated.js';
import { goodHead, httpAnswer, type Script, ticketFields } from './answers.js';
import { type Ran, type Scripted, startScripted } from './scripted.js';
import { ticketBodies, WSS } from './ticket-fields.js';

const replaced = {
  end: 'end',
  bytes: (request: string) => [Buffer.from(`${goodHead(request)}\x88\x02\x0f\xa1`, 'latin1')],
} as const;

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
const json = (value: unknown) => (wssUrl: string) => withAddress(Buffer.from(JSON.stringify(value)), wssUrl);
const good = (wssUrl: string) => Buffer.from(JSON.stringify(ticketFields(wssUrl)));

/** The outcomes of an attempt with an accepted ticket: the handshake sends that ticket, or no server listens at the address. */
const afterTicket = ['connection-replaced', 'subprotocol-mismatch', 'handshake-unreachable'];

const isTaken = ({ code, failure, requests }: Ran, body: string): boolean => {
  if (code === 'invalid-ticket') {
    expect(failure).toMatchObject({ stage: 'ticket', verdict: 'stop' });
    return false;
  }
  expect(afterTicket).toContain(code);
  // The handshake sends the ticket of the body, and only the ticket request sends the key.
  const { ticket } = JSON.parse(body) as { ticket: string };
  for (const handshake of requests.slice(1)) {
    expect(/^authorization: (.*)\r$/im.exec(handshake)?.[1]).toBe(`Bearer ${ticket}`);
    expect(handshake).not.toContain(plantedKey);
  }
  return true;
};

/** A long or deeply nested body: an opening and a closing text, repeated. */
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
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
  fc.constantFrom('', ' ', 'null', '[]', '""', 'NaN', '{}', '{"__proto__":{}}').map((text) => Buffer.from(text)),
  // Short bodies: the error of a parser quotes the text that it has read.
  fc
    .constantFrom(plantedKey, plantedTicket, `{"ticket":"${plantedTicket}`, `"${plantedTicket}"x`)
    .map((text) => Buffer.from(text)),
  nested,
);

const bodyOf = (what: Buffer | Nested | readonly Change[], wssUrl: string): Buffer => {
  if (Buffer.isBuffer(what)) return what;
  return 'open' in what
    ? Buffer.from(`${what.open.repeat(what.times)}1${what.shut.repeat(what.times)}`)
    : // The address itself is left alone: it would lead to whoever else listens on this machine.
      withAddress(changed(good(WSS), what), wssUrl);
};

/** Changes of a whole valid body, and whether the result is a ticket. */
const wrappings: readonly (readonly [string, (body: Buffer) => Buffer, boolean])[] = [
  ['none', (body) => body, true],
  ['BOM', (body) => Buffer.concat([Buffer.from('\ufeff'), body]), false],
  ['white space', (body) => Buffer.from(` \r\n\t${String(body)}\n`), true],
  ['bad UTF-8 in an unknown field', (body) => Buffer.from(`{"x":"\xff\xc0",${String(body).slice(1)}`, 'latin1'), true],
  ['bad UTF-8 in the ticket', (body) => Buffer.from(String(body).replace('"ticket":"', '$&\xff'), 'latin1'), false],
  [
    'the last of two equal keys counts',
    (body) => Buffer.from(`{"ticket":5,"feed":null,${String(body).slice(1)}`),
    true,
  ],
  ['a second ticket that is invalid', (body) => Buffer.from(`${String(body).slice(0, -1)},"ticket":5}`), false],
  ['gzip', (body) => gzipSync(body), false],
  ['UTF-16', (body) => Buffer.from(String(body), 'utf16le'), false],
  ['twice', (body) => Buffer.concat([body, body]), false],
  ['longer than any ticket', (body) => Buffer.concat([body, Buffer.alloc(70_000, ' ')]), false],
];

const dates = fc.constantFrom(
  ...[[], [], ['Date: Thu, 01 Jan 1970 00:00:00 GMT'], ['Date: now'], ['Date: Fri, 31 Dec 9999 23:59:59 GMT']],
);

describe(`the body of a ticket response, with FUZZ_SEED=${seed}`, () => {
  let scripted: Scripted;
  beforeAll(async () => void (scripted = await startScripted()));
  afterAll(async () => {
    await scripted[Symbol.asyncDispose]();
  });

  it(
    'is a ticket exactly if each field is valid',
    () =>
      fuzz('ticket fields', fc.tuple(ticketBodies, dates, places), 72, async ([{ fields, isTicket }, date, cuts]) => {
        const ran = await scripted.run(answering(json(fields), date, cuts), { handshakeTimeoutMs: 5_000 });
        expect([isTaken(ran, JSON.stringify(fields)), ran.failure.message]).toEqual([isTicket, ran.failure.message]);
        // A `Date` after `expires_at` does not expire a new ticket: the client tries it.
        expect(ran.code).not.toBe('ticket-expired');
        return ran.code;
      }),
    timeoutFor(150),
  );

  it(
    'is a ticket or a clear failure for any bytes',
    () =>
      fuzz('ticket bytes', fc.tuple(fc.oneof(changes(4), others), places), 72, async ([change, cuts]) => {
        let body: Buffer = Buffer.alloc(0);
        const bytes = (wssUrl: string) => (body = bodyOf(change, wssUrl));
        const ran = await scripted.run(answering(bytes, [], cuts));
        isTaken(ran, String(body));
        return ran.code;
      }),
    timeoutFor(150),
  );

  it.each(wrappings)('with a change of the whole body: %s', async (_what, wrap, isTicket) => {
    for (const headers of [[], ['Content-Encoding: gzip'], ['Content-Type: text/html']]) {
      const ran = await scripted.run(answering((wssUrl) => wrap(good(wssUrl)), headers));
      expect(ran.code).toBe(isTicket ? 'connection-replaced' : 'invalid-ticket');
    }
  });
});
