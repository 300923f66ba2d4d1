import fc from 'fast-check';
import { wsFrame } from '../support/wire.js';
import * as means from './expected.js';
import * as feeds from './feed-model.js';
import type { World } from './world.js';

type Feed = feeds.ModelFeed;
type Change = (feed: Feed, now: number, world: World) => feeds.Outcome;
type Act = (feed: Feed, world: World) => void;

/** An action of the service in one phase of a feed: on the real feed, and in the model. */
export interface ServiceAction {
  readonly name: string;
  readonly act: Act;
  readonly change: Change;
  readonly may?: (feed: Feed) => boolean;
}

/** An action for each phase in which the service can act. */
export type ServiceActions = Readonly<Record<'requesting' | 'handshaking' | 'open', ServiceAction>>;

const endsWith =
  (failure: means.Expected): Change =>
  (feed, at) =>
    feeds.failed(feed, at, failure);

const ticketOf = ({ subscription }: Feed, { service }: World) => service.tickets.get(subscription);
const handshakeOf = ({ subscription }: Feed, { service }: World) => service.handshakes.get(subscription);
const streamOf = ({ subscription }: Feed, { service }: World) => service.streams.get(subscription);

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

const action = (name: string, act: Act, change: Change, may?: ServiceAction['may']): ServiceAction => ({
  name,
  act,
  change,
  ...(may ? { may } : {}),
});

const goodTicket = action(
  'a ticket',
  (feed, world) => ticketOf(feed, world)?.issue(60_000),
  (feed, at) => feeds.issued(feed, at, 60_000, means.expiredTicket),
);

const requesting: fc.Arbitrary<ServiceAction> = fc.oneof(
  fc.constantFrom(...lifetimes).map((ms) =>
    action(
      `a ticket for ${ms} ms`,
      (feed, world) => ticketOf(feed, world)?.issue(ms),
      (feed, at) => feeds.issued(feed, at, ms, means.expiredTicket),
    ),
  ),
  fc
    .constantFrom(...means.ticketRefusals)
    .map(([status, after, failure]) =>
      action(
        `no ticket, ${status} ${after ?? ''}`,
        (feed, world) => ticketOf(feed, world)?.refuse(status, retryAfter(after)),
        endsWith(failure),
      ),
    ),
  fc
    .constantFrom(...noTickets)
    .map((body) =>
      action(
        `200 with ${body}`,
        (feed, world) => ticketOf(feed, world)?.refuse(200, {}, body),
        endsWith(means.noTicket),
      ),
    ),
  fc
    .constantFrom(...garbage)
    .map((bytes) =>
      action('no HTTP', (feed, world) => ticketOf(feed, world)?.answerRaw(bytes), endsWith(means.unreachableTicket)),
    ),
  fc.constant(
    action(
      'the ticket request is reset',
      (feed, world) => ticketOf(feed, world)?.reset(),
      // A reused connection may be closed already. Then the request is sent again over a new connection.
      (feed, at, world) =>
        ticketOf(feed, world)?.isWarm ? { feed, steps: [] } : feeds.failed(feed, at, means.unreachableTicket),
    ),
  ),
);

const handshaking: fc.Arbitrary<ServiceAction> = fc.oneof(
  fc
    .constantFrom(...means.handshakeRefusals)
    .map(([status, after, failure]) =>
      action(
        `no handshake, ${status} ${after ?? ''}`,
        (feed, world) => handshakeOf(feed, world)?.refuse(status, retryAfter(after)),
        endsWith(failure),
      ),
    ),
  fc
    .constantFrom('', 'mmp.trade-batch.v0')
    .map((subprotocol) =>
      action(
        `101 for "${subprotocol}"`,
        (feed, world) => handshakeOf(feed, world)?.accept(0, subprotocol),
        endsWith(means.mismatch),
      ),
    ),
  fc.constant(
    action(
      'the handshake is reset',
      (feed, world) => handshakeOf(feed, world)?.reset(),
      endsWith(means.unreachableHandshake),
    ),
  ),
);

const opening: fc.Arbitrary<ServiceAction> = fc.nat({ max: 3 }).map((frames) =>
  action(
    `101 with ${frames} frames`,
    (feed, world) => handshakeOf(feed, world)?.accept(frames),
    (feed, at) => feeds.opened(feed, at, frames),
  ),
);

const pushed: fc.Arbitrary<ServiceAction> = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.constantFrom(0, 0, 200, 70_000))
  .map(([many, bytes]): readonly [number, number] => [bytes > 10_000 ? 2 : many, bytes])
  .map(([count, bytes]) =>
    action(
      `${count} frames of ${bytes} bytes`,
      (feed, world) => streamOf(feed, world)?.push(count, bytes),
      (feed, at) => feeds.received(feed, at, count),
    ),
  );

const streaming: fc.Arbitrary<ServiceAction> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constantFrom(...means.closes), fc.nat({ max: 5 })).map(([[code, reason, failure], frames]) =>
      action(
        `${frames} frames and ${code} "${reason}"`,
        (feed, world) => streamOf(feed, world)?.close(code, reason, frames),
        (feed, at) => feeds.then(feeds.received(feed, at, frames), (next) => feeds.failed(next, at, failure)),
      ),
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(...broken)
      .map((bytes) =>
        action(
          'a broken frame',
          (feed, world) => streamOf(feed, world)?.breakFraming(bytes),
          endsWith(means.invalidFrame),
        ),
      ),
  },
  {
    weight: 1,
    arbitrary: fc.constant(action('reset', (feed, world) => streamOf(feed, world)?.reset(), endsWith(means.lost))),
  },
  {
    weight: 1,
    arbitrary: fc.constant(
      action('an end without a close frame', (feed, world) => streamOf(feed, world)?.end(), endsWith(means.lost)),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constant(
      action(
        'half-open',
        (feed, world) => streamOf(feed, world)?.mute(),
        (feed) => ({ feed: { ...feed, isMute: true }, steps: [] }),
        ({ profile }) => profile.idleTimeoutMs > 0,
      ),
    ),
  },
);

const mostly = (good: fc.Arbitrary<ServiceAction>, bad: fc.Arbitrary<ServiceAction>): fc.Arbitrary<ServiceAction> =>
  fc.oneof({ weight: 3, arbitrary: good }, { weight: 1, arbitrary: bad });

/** Actions of the service, most of them without a fault. */
export const serviceActions: fc.Arbitrary<ServiceActions> = fc.record({
  requesting: mostly(fc.constant(goodTicket), requesting),
  handshaking: mostly(opening, handshaking),
  open: fc.oneof(pushed, streaming),
});
