import { describe, expect, it } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { gzipSync } from 'node:zlib';
import { fuzz, seed } from './fuzz.js';
import { httpAround, type HttpBytes, rightHandshake, rightTicket, WSS, written } from './http-bytes.js';
import { type Change, changed, changes, cutAt, places } from './mutated.js';
import { type Answer, goodHead, goodTicket, httpAnswer, plantedKey, plantedTicket } from './scripted.js';
import { type Ran, type Script, scriptedServer, ticketFields } from './scripted.js';

const scripted = scriptedServer();

type Field = 'ticket' | 'token_type' | 'expires_at' | 'wss_url' | 'feed' | 'subprotocol';

const soon = (): string => new Date(Date.now() + 60_000).toISOString();

/** Values that a client must accept. The server identifies a stream only by its path. */
const accepted: Readonly<Record<Field, readonly unknown[]>> = {
  ticket: [plantedTicket, `${plantedTicket}.=+/!#$~`, plantedTicket.repeat(50), plantedTicket.repeat(800)],
  token_type: ['Bearer'],
  expires_at: [soon(), '2099-12-31T23:59:60Z', '2099-01-01t00:00:00.123456+05:30', '9999-12-31T23:59:59Z'],
  wss_url: [WSS, `${WSS}?a=b&c=%00`, `${WSS}/../${'x'.repeat(500)}`.replace('/../', '/'), 'wss://127.0.0.1:1/'],
  feed: ['market', 'raw'],
  subprotocol: ['mmp.trade-batch.v1', "!#$%&'*+-.^_`|~0", plantedTicket],
};

const pair = `${plantedKey} ${plantedTicket}`;
const badTexts = ['', ' ', '\0', '\ud800', 'é', plantedKey, pair, 'x'.repeat(3_000), '__proto__'];
const notTexts: readonly unknown[] = [null, undefined, 0, -1, 1e308, true, [], ['Bearer'], {}, { toString: 'x' }, [[]]];

/** Values that a client must reject. */
const rejected: Readonly<Record<Field, readonly unknown[]>> = {
  ticket: ['', ' ', 'a b', 'a\r\nX-Injected: 1', 'a\0', 'é', '😀', `${plantedTicket}\n`],
  token_type: ['bearer', 'Basic', 'Bearer ', ...badTexts],
  expires_at: ['tomorrow', '2099-13-01T00:00:00Z', '2099-01-01', '2099-01-01 00:00:00Z', '4102444800', ...badTexts],
  wss_url: [
    ...['https://127.0.0.1/', 'ws://example.com/', 'ws://127.0.0.1.example.com/', 'ws://127.0.0.1@example.com/'],
    ...['wss://user:pw@127.0.0.1/', 'wss://127.0.0.1/#x', 'wss://', '//127.0.0.1/', 'file:///etc/passwd'],
    ...['wss://127.0.0.1:99999/', 'wss://127.0.0.1/ x', 'wss://127.0.0.1/\r\nx', 'wss://[::1/', ...badTexts],
  ],
  feed: ['Market', 'markets', 'constructor', ...badTexts],
  subprotocol: ['a,b', 'a b', 'a/b', 'a\r\nb', 'é', '(x)', '', '\0'],
};

/** A body as an object of fields, and whether it's a ticket. */
interface Fields {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly isTicket: boolean;
}

const names = Object.keys(accepted) as Field[];

const valueOf = (name: Field): Arbitrary<{ readonly value: unknown; readonly isGood: boolean }> =>
  fc.oneof(
    { arbitrary: fc.constantFrom(...accepted[name]).map((value) => ({ value, isGood: true })), weight: 12 },
    {
      arbitrary: fc.constantFrom(...rejected[name], ...notTexts).map((value) => ({ value, isGood: false })),
      weight: 1,
    },
  );

// Unknown fields, and names that a careless parser wouldn't treat as data.
const extras = fc.dictionary(
  fc.oneof(fc.constantFrom('__proto__', 'constructor', 'toJSON', 'redact', 'deadlineMs', 'api_key'), fc.string()),
  fc.oneof(fc.jsonValue(), fc.constantFrom(plantedKey, plantedTicket, -1, 0)),
  { maxKeys: 3 },
);

/** Bodies with mostly valid fields. */
const ticketBodies: Arbitrary<Fields> = fc
  .tuple(fc.record(Object.fromEntries(names.map((name) => [name, valueOf(name)]))), extras)
  .map(([values, extra]) => ({
    fields: {
      ...Object.fromEntries(Object.entries(extra).filter(([name]) => !(names as string[]).includes(name))),
      ...Object.fromEntries(Object.entries(values).map(([name, { value }]) => [name, value])),
    },
    isTicket: Object.values(values).every(({ isGood }) => isGood),
  }));

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
const json = (value: unknown) => (wssUrl: string) => withAddress(Buffer.from(JSON.stringify(value)), wssUrl);
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
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
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

const dates = fc
  .constantFrom('', '', 'Date: Thu, 01 Jan 1970 00:00:00 GMT', 'Date: now', 'Date: Fri, 31 Dec 9999 23:59:59 GMT')
  .map((date) => (date === '' ? [] : [date]));

describe(`the body of a ticket response, with FUZZ_SEED=${seed}`, () => {
  const bodies = fc.tuple(ticketBodies, dates, places);
  fuzz(
    'is a ticket exactly if each field is valid',
    'ticket fields',
    72,
    bodies,
    async ([{ fields, isTicket }, date, cuts]) => {
      const ran = await scripted.run(answering(json(fields), date, cuts), { handshakeTimeoutMs: 5_000 });
      expect([isTaken(ran, JSON.stringify(fields)), ran.failure.message]).toEqual([isTicket, ran.failure.message]);
      // A `Date` after `expires_at` doesn't expire a new ticket, so the client tries it.
      expect(ran.code).not.toBe('ticket-expired');
      return ran.code;
    },
  );

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

// The test ignores how long the server wants it to wait.
const atOnce = (http: HttpBytes): HttpBytes => ({
  ...http,
  headers: http.headers.filter((header) => !header.startsWith('Retry-After')),
});

/** One attempt. Mostly valid, so that attempts build on the state that the previous ones left. */
const attempt: Arbitrary<Script> = fc.oneof(
  httpAround(rightTicket(JSON.stringify(ticketFields(WSS)))).map((http) => ({
    ticket: written(atOnce(http)),
    handshake: sending('\x88\x02\x03\xe9'),
  })),
  httpAround(rightHandshake).map((http) => ({ ticket: goodTicket, handshake: written(atOnce(http)) })),
  fc
    .constantFrom('\x88\x02\x03\xe9', '\x83\0', '\x81\x01', '')
    .map((bytes) => ({ ticket: goodTicket, handshake: sending(bytes) })),
);

describe(`one feed and many attempts at a hostile server, with FUZZ_SEED=${seed}`, () => {
  const all = fc.array(attempt, { minLength: 2, maxLength: 6 });
  const title = 'ends each attempt with a clear failure, and leaves no connection open';
  fuzz(title, 'attempts, one after the other', 48, all, async (attempts) => {
    const maxAttempts = 5;
    const deadlines = { ticketTimeoutMs: 150, handshakeTimeoutMs: 150, idleTimeoutMs: 50 };
    const codes = await scripted.runAll(attempts, { ...deadlines, backoff: { maxAttempts } });
    expect(codes.length).toBeLessThanOrEqual(maxAttempts + 1);
    return `${codes.length} attempts`;
  });
});
