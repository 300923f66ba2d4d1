import fc from 'fast-check';
import { wsFrame } from '../support/wire.js';
import * as means from './expected.js';
import * as feeds from './feed-model.js';
import type { World } from './world.js';

type Feed = feeds.ModelFeed;
type Change = (feed: Feed, now: number, world: World) => feeds.Outcome;
type Act = (feed: Feed, world: World) => void;

/** Something that happens to a feed in a phase: to the real one, and what the model makes of it. */
export interface Deed {
  readonly name: string;
  readonly act: Act;
  readonly change: Change;
  readonly may?: (feed: Feed) => boolean;
}

/** One for each phase in which the service has something to say. */
export type Deeds = Readonly<Record<'asking' | 'shaking' | 'open', Deed>>;

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

const deed = (name: string, act: Act, change: Change, may?: Deed['may']): Deed => ({
  name,
  act,
  change,
  ...(may ? { may } : {}),
});

const goodTicket = deed(
  'a ticket',
  (feed, world) => ticketOf(feed, world)?.issue(60_000),
  (feed, at) => feeds.issued(feed, at, 60_000, means.expiredTicket),
);

const asking: fc.Arbitrary<Deed> = fc.oneof(
  fc.constantFrom(...lifetimes).map((ms) =>
    deed(
      `a ticket for ${ms} ms`,
      (feed, world) => ticketOf(feed, world)?.issue(ms),
      (feed, at) => feeds.issued(feed, at, ms, means.expiredTicket),
    ),
  ),
  fc
    .constantFrom(...means.ticketRefusals)
    .map(([status, after, failure]) =>
      deed(
        `no ticket, ${status} ${after ?? ''}`,
        (feed, world) => ticketOf(feed, world)?.refuse(status, retryAfter(after)),
        endsWith(failure),
      ),
    ),
  fc
    .constantFrom(...noTickets)
    .map((body) =>
      deed(`200 with ${body}`, (feed, world) => ticketOf(feed, world)?.refuse(200, {}, body), endsWith(means.noTicket)),
    ),
  fc
    .constantFrom(...garbage)
    .map((bytes) =>
      deed('no HTTP', (feed, world) => ticketOf(feed, world)?.answerRaw(bytes), endsWith(means.unreachableTicket)),
    ),
  fc.constant(
    deed(
      'the ticket request is reset',
      (feed, world) => ticketOf(feed, world)?.reset(),
      // What was kept from the request before may have been closed by then: it is asked once more, over a fresh connection.
      (feed, at, world) =>
        ticketOf(feed, world)?.isWarm ? { feed, steps: [] } : feeds.failed(feed, at, means.unreachableTicket),
    ),
  ),
);

const shaking: fc.Arbitrary<Deed> = fc.oneof(
  fc
    .constantFrom(...means.handshakeRefusals)
    .map(([status, after, failure]) =>
      deed(
        `no handshake, ${status} ${after ?? ''}`,
        (feed, world) => handshakeOf(feed, world)?.refuse(status, retryAfter(after)),
        endsWith(failure),
      ),
    ),
  fc
    .constantFrom('', 'mmp.trade-batch.v0')
    .map((subprotocol) =>
      deed(
        `101 for "${subprotocol}"`,
        (feed, world) => handshakeOf(feed, world)?.accept(0, subprotocol),
        endsWith(means.mismatch),
      ),
    ),
  fc.constant(
    deed(
      'the handshake is reset',
      (feed, world) => handshakeOf(feed, world)?.reset(),
      endsWith(means.unreachableHandshake),
    ),
  ),
);

const opening: fc.Arbitrary<Deed> = fc.nat({ max: 3 }).map((frames) =>
  deed(
    `101 with ${frames} frames`,
    (feed, world) => handshakeOf(feed, world)?.accept(frames),
    (feed, at) => feeds.opened(feed, at, frames),
  ),
);

const pushed: fc.Arbitrary<Deed> = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.constantFrom(0, 0, 200, 70_000))
  .map(([many, bytes]): readonly [number, number] => [bytes > 10_000 ? 2 : many, bytes])
  .map(([count, bytes]) =>
    deed(
      `${count} frames of ${bytes} bytes`,
      (feed, world) => streamOf(feed, world)?.push(count, bytes),
      (feed, at) => feeds.heard(feed, at, count),
    ),
  );

const streaming: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constantFrom(...means.closes), fc.nat({ max: 5 })).map(([[code, reason, failure], frames]) =>
      deed(
        `${frames} frames and ${code} "${reason}"`,
        (feed, world) => streamOf(feed, world)?.close(code, reason, frames),
        (feed, at) => feeds.then(feeds.heard(feed, at, frames), (next) => feeds.failed(next, at, failure)),
      ),
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(...broken)
      .map((bytes) =>
        deed(
          'a broken frame',
          (feed, world) => streamOf(feed, world)?.breakFraming(bytes),
          endsWith(means.invalidFrame),
        ),
      ),
  },
  {
    weight: 1,
    arbitrary: fc.constant(deed('reset', (feed, world) => streamOf(feed, world)?.reset(), endsWith(means.lost))),
  },
  {
    weight: 1,
    arbitrary: fc.constant(
      deed('an end without a close frame', (feed, world) => streamOf(feed, world)?.end(), endsWith(means.lost)),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constant(
      deed(
        'half-open',
        (feed, world) => streamOf(feed, world)?.mute(),
        (feed) => ({ feed: { ...feed, isMute: true }, steps: [] }),
        ({ profile }) => profile.idleTimeoutMs > 0,
      ),
    ),
  },
);

const mostly = (good: fc.Arbitrary<Deed>, bad: fc.Arbitrary<Deed>): fc.Arbitrary<Deed> =>
  fc.oneof({ weight: 3, arbitrary: good }, { weight: 1, arbitrary: bad });

/** What the service does, mostly as it should. */
export const deeds: fc.Arbitrary<Deeds> = fc.record({
  asking: mostly(fc.constant(goodTicket), asking),
  shaking: mostly(opening, shaking),
  open: fc.oneof(pushed, streaming),
});
