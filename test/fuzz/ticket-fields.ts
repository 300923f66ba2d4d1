import fc, { type Arbitrary } from 'fast-check';
import { plantedKey, plantedTicket } from './failure-rules.js';

/** A placeholder for the address of the stream of the case. */
export const WSS = '@WSS@';

type Field = 'ticket' | 'token_type' | 'expires_at' | 'wss_url' | 'feed' | 'subprotocol';

const soon = (): string => new Date(Date.now() + 60_000).toISOString();

/** Values that a client must accept. The server identifies a stream by the path of the address alone. */
const good: Readonly<Record<Field, readonly unknown[]>> = {
  ticket: [plantedTicket, `${plantedTicket}.=+/!#$~`, plantedTicket.repeat(50), plantedTicket.repeat(1_500)],
  token_type: ['Bearer'],
  expires_at: [soon(), '2099-12-31T23:59:60Z', '2099-01-01t00:00:00.123456+05:30', '9999-12-31T23:59:59Z'],
  wss_url: [WSS, `${WSS}?a=b&c=%00`, `${WSS}/../${'x'.repeat(500)}`.replace('/../', '/'), 'wss://127.0.0.1:1/'],
  feed: ['market', 'raw'],
  subprotocol: ['mmp.trade-batch.v1', "!#$%&'*+-.^_`|~0", plantedTicket],
};

const badTexts = [
  '',
  ' ',
  '\0',
  '\ud800',
  'é',
  plantedKey,
  `${plantedKey} ${plantedTicket}`,
  'x'.repeat(3_000),
  '__proto__',
];
const notTexts: readonly unknown[] = [
  null,
  undefined,
  0,
  -1,
  1e308,
  true,
  [],
  ['Bearer'],
  {},
  { toString: 'x' },
  [[[]]],
];

/** Values that a client must reject. */
const bad: Readonly<Record<Field, readonly unknown[]>> = {
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

/** A body as an object of fields, and whether it is a ticket. */
export interface Fields {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly isTicket: boolean;
}

const names = Object.keys(good) as Field[];

const valueOf = (name: Field): Arbitrary<{ readonly value: unknown; readonly isGood: boolean }> =>
  fc.oneof(
    { arbitrary: fc.constantFrom(...good[name]).map((value) => ({ value, isGood: true })), weight: 12 },
    {
      arbitrary: fc.constantFrom(...bad[name], ...notTexts).map((value) => ({ value, isGood: false })),
      weight: 1,
    },
  );

// Unknown fields, and names that a careless parser would not treat as data.
const extras = fc.dictionary(
  fc.oneof(fc.constantFrom('__proto__', 'constructor', 'toJSON', 'redact', 'deadlineMs', 'api_key'), fc.string()),
  fc.oneof(fc.jsonValue(), fc.constantFrom(plantedKey, plantedTicket, -1, 0)),
  { maxKeys: 3 },
);

/** Bodies with mostly valid fields. */
export const ticketBodies: Arbitrary<Fields> = fc
  .tuple(fc.record(Object.fromEntries(names.map((name) => [name, valueOf(name)]))), extras)
  .map(([values, extra]) => ({
    fields: {
      ...Object.fromEntries(Object.entries(extra).filter(([name]) => !(names as string[]).includes(name))),
      ...Object.fromEntries(Object.entries(values).map(([name, { value }]) => [name, value])),
    },
    isTicket: Object.values(values).every(({ isGood }) => isGood),
  }));
