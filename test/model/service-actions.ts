import fc from 'fast-check';
import { wsFrame } from '../support/wire.js';
import * as means from './expected.js';
import * as feeds from './feed-model.js';
import type { World } from './world.js';

type Feed = feeds.ModelFeed;
type Change = (feed: Feed, now: number, world: World) => feeds.Outcome;
type Act = (feed: Feed, world: World) => void;

/** What the service does in one phase of a feed: to the real feed, and in the model. */
export interface ServiceAction {
  readonly name: string;
  readonly act: Act;
  readonly change: Change;
  readonly may?: (feed: Feed) => boolean;
}

/** An action for each phase where the service can act. */
export type ServiceActions = Readonly<Record<'requesting' | 'handshaking' | 'open', ServiceAction>>;

type Held = World['service'];
type There<Place extends 'tickets' | 'handshakes' | 'streams'> =
  Held[Place] extends ReadonlyMap<number, infer T> ? T : never;

/** Creates the actions for what waits at the service: a ticket request, a handshake, a stream. */
const on =
  <Place extends 'tickets' | 'handshakes' | 'streams'>(place: Place) =>
  (name: string, act: (there: There<Place>) => void, change: Change, may?: ServiceAction['may']): ServiceAction => ({
    name,
    act: ({ subscription }, { service }) => {
      const there = service[place].get(subscription);
      if (there !== undefined) act(there as There<Place>);
    },
    change,
    ...(may && { may }),
  });
const onTicket = on('tickets');
const onHandshake = on('handshakes');
const onStream = on('streams');

const endsWith =
  (failure: means.Expected): Change =>
  (feed, at) =>
    feeds.failed(feed, at, failure);

const lifetimes = [60_000, 60_000, 60_000, 5_000, 1_000, 0, -30_000] as const;
const garbage = [
  'SMTP ready\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n{"ticket"',
  'HTTP/9.9 xyz\r\n\r\n',
] as const;
const noTickets = ['{}', 'null', '<html>', '{"ticket":"x"}', ''] as const;
const broken = [
  wsFrame(3, 'reserved'),
  Buffer.from([0xc1, 0]),
  wsFrame(1, Buffer.from([0xff])),
  wsFrame(1, Buffer.alloc(100_001)),
] as const;

const retryAfter = (value: string | undefined) => (value === undefined ? {} : { 'retry-after': value });

const issues = (ms: number): ServiceAction =>
  onTicket(
    `a ticket for ${ms} ms`,
    (request) => request.issue(ms),
    (feed, at) => feeds.issued(feed, at, ms, means.expiredTicket),
  );

// If a reused connection is already closed, the request is repeated over a new one.
const resetTicket: Change = (feed, at, { service }) =>
  service.tickets.get(feed.subscription)?.isWarm
    ? { feed, steps: [] }
    : feeds.failed(feed, at, means.unreachableTicket);

const requesting: fc.Arbitrary<ServiceAction> = fc.oneof(
  fc.constantFrom(...lifetimes).map(issues),
  fc.constantFrom(...means.ticketRefusals).map(([status, after, failure]) => {
    const name = `no ticket, ${status} ${after ?? ''}`;
    return onTicket(name, (request) => request.refuse(status, retryAfter(after)), endsWith(failure));
  }),
  fc
    .constantFrom(...noTickets)
    .map((body) => onTicket(`200 with ${body}`, (request) => request.refuse(200, {}, body), endsWith(means.noTicket))),
  fc
    .constantFrom(...garbage)
    .map((bytes) => onTicket('no HTTP', (request) => request.answerRaw(bytes), endsWith(means.unreachableTicket))),
  fc.constant(onTicket('the ticket request is reset', (request) => request.reset(), resetTicket)),
);

const handshaking: fc.Arbitrary<ServiceAction> = fc.oneof(
  fc.constantFrom(...means.handshakeRefusals).map(([status, after, failure]) => {
    const name = `no handshake, ${status} ${after ?? ''}`;
    return onHandshake(name, (request) => request.refuse(status, retryAfter(after)), endsWith(failure));
  }),
  fc
    .constantFrom('', 'mmp.trade-batch.v0')
    .map((name) => onHandshake(`101 for "${name}"`, (request) => request.accept(0, name), endsWith(means.mismatch))),
  fc.constant(
    onHandshake('the handshake is reset', (request) => request.reset(), endsWith(means.unreachableHandshake)),
  ),
);

const opening: fc.Arbitrary<ServiceAction> = fc.nat({ max: 3 }).map((frames) =>
  onHandshake(
    `101 with ${frames} frames`,
    (request) => request.accept(frames),
    (feed, at) => feeds.opened(feed, at, frames),
  ),
);

const pushed: fc.Arbitrary<ServiceAction> = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.constantFrom(0, 0, 200, 70_000))
  .map(([many, bytes]): readonly [number, number] => [bytes > 10_000 ? 2 : many, bytes])
  .map(([count, bytes]) =>
    onStream(
      `${count} frames of ${bytes} bytes`,
      (stream) => stream.push(count, bytes),
      (feed, at) => feeds.received(feed, at, count),
    ),
  );

const closed = fc.tuple(fc.constantFrom(...means.closes), fc.nat({ max: 5 })).map(([[code, reason, failure], frames]) =>
  onStream(
    `${frames} frames and ${code} "${reason}"`,
    (stream) => stream.close(code, reason, frames),
    (feed, at) => feeds.then(feeds.received(feed, at, frames), (next) => feeds.failed(next, at, failure)),
  ),
);

const halfOpen = onStream(
  'half-open',
  (stream) => stream.mute(),
  (feed) => ({ feed: { ...feed, isMute: true }, steps: [] }),
  ({ profile }) => profile.idleTimeoutMs > 0,
);

const streaming: fc.Arbitrary<ServiceAction> = fc.oneof(
  { weight: 4, arbitrary: closed },
  fc
    .constantFrom(...broken)
    .map((bytes) => onStream('a broken frame', (stream) => stream.breakFraming(bytes), endsWith(means.invalidFrame))),
  fc.constant(onStream('reset', (stream) => stream.reset(), endsWith(means.lost))),
  fc.constant(onStream('an end without a close frame', (stream) => stream.end(), endsWith(means.lost))),
  fc.constant(halfOpen),
);

const mostly = (good: fc.Arbitrary<ServiceAction>, bad: fc.Arbitrary<ServiceAction>): fc.Arbitrary<ServiceAction> =>
  fc.oneof({ weight: 3, arbitrary: good }, { weight: 1, arbitrary: bad });

/** Actions of the service, mostly without a fault. */
export const serviceActions: fc.Arbitrary<ServiceActions> = fc.record({
  requesting: mostly(fc.constant(issues(60_000)), requesting),
  handshaking: mostly(opening, handshaking),
  open: fc.oneof(pushed, streaming),
});
