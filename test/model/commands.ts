import fc, { type AsyncCommand } from 'fast-check';
import { type Deeds, deeds } from './deeds.js';
import * as means from './expected.js';
import * as feeds from './feed-model.js';
import { moments, watch, type Whim } from './watched.js';
import { advance, begins, expectOutcomes, type Model, type World } from './world.js';

type Feed = feeds.ModelFeed;
type Command = AsyncCommand<Model, World>;

const MOST_FEEDS = 3;
const now = (): number => performance.now();
const live = (model: Readonly<Model>): readonly Feed[] =>
  [...model.feeds.values()].filter(({ phase }) => phase !== 'over');

/** Does to a feed what fits its phase; for one that waits, or hears nothing any more, time goes on. */
const happen = (pick: number, deeds: Deeds): Command => {
  const picked = (model: Readonly<Model>) => live(model)[pick % live(model).length];
  const deedFor = ({ phase, isMute }: Feed) =>
    phase === 'waiting' || phase === 'over' || (phase === 'open' && isMute) ? undefined : deeds[phase];
  let done = '';
  return {
    check: (model) => {
      const feed = picked(model);
      return feed !== undefined && (deedFor(feed)?.may?.(feed) ?? true);
    },
    run: (model, world) => {
      const feed = picked(model) as Feed;
      const fit = deedFor(feed);
      done = fit ? `${fit.name} [${feed.phase} ${feed.subscription}]` : 'time goes on';
      return fit
        ? expectOutcomes(model, world, [fit.change(feed, now(), world)], () => fit.act(feed, world))
        : time(1).run(model, world);
    },
    toString: () => done,
  };
};

const subscribe = (profile: feeds.Profile): Command => ({
  check: (model) => live(model).length < MOST_FEEDS,
  run: (model, world) => {
    const id = model.feeds.size + 1;
    const feed = feeds.subscribed(id, profile, now());
    return expectOutcomes(model, world, [begins(model, feed, now())], () => {
      const { ticketTimeoutMs, handshakeTimeoutMs, idleTimeoutMs, drawn, ...backoff } = profile;
      const timeouts = { ticketTimeoutMs, handshakeTimeoutMs, idleTimeoutMs };
      const options = {
        baseUrl: world.service.baseUrl,
        ...timeouts,
        maxFrameBytes: 100_000,
        backoff: { ...backoff, random: () => drawn },
      };
      world.watched.set(id, watch(id, options));
    });
  },
  toString: () => `subscribe ${JSON.stringify(profile)}`,
});

const unsubscribe = (pick: number): Command => ({
  check: (model) => live(model).length > 0,
  run: (model, world) => {
    const feed = live(model)[pick % live(model).length] as Feed;
    const over = {
      feed: { ...feed, phase: 'over', dueAt: Infinity, whim: undefined } as const,
      steps: ['unsubscribed'] as const,
    };
    return expectOutcomes(model, world, [over], () => world.watched.get(feed.subscription)?.unsubscribe());
  },
  toString: () => `unsubscribe [${pick}]`,
});

const whim = (pick: number, what: Whim): Command => ({
  check: (model) => live(model).length > 0,
  run: (model, world) => {
    const feed = live(model)[pick % live(model).length] as Feed;
    return expectOutcomes(model, world, [{ feed: { ...feed, whim: what }, steps: [] }], () => {
      const watched = world.watched.get(feed.subscription);
      if (watched) watched.whim = what;
    });
  },
  toString: () => `at the next ${what.on}: ${what.does} [${pick}]`,
});

/** Time goes by, up to where the next thing happens by itself, or not quite. */
const time = (share: number): Command => ({
  check: (model) => live(model).some(({ dueAt }) => dueAt < Infinity),
  run: (model, world) => {
    const dueAt = Math.min(...live(model).map((feed) => feed.dueAt));
    const ms = share === 1 ? dueAt - now() : Math.floor((dueAt - now()) * share);
    const at = now() + ms;
    const outcomes = live(model)
      .filter((feed) => feed.dueAt <= at)
      .map((feed) => happens(model, feed, at));
    return expectOutcomes(model, world, outcomes, () => advance(ms), at);
  },
  toString: () => (share === 1 ? 'time goes on' : `time goes on, to ${share}`),
});

const happens = (model: Readonly<Model>, feed: Feed, at: number): feeds.Outcome => {
  if (feed.phase === 'waiting') return begins(model, feed, at);
  if (feed.phase === 'asking') return feeds.failed(feed, at, means.unreachableTicket);
  if (feed.phase === 'shaking')
    return feeds.failed(feed, at, feed.expires ? means.expiredTicket : means.unreachableHandshake);
  return feeds.silent(feed, at, means.stalled);
};

/** The service goes: with a close frame to all that stream, or without. */
const outage = (saysGoodbye: boolean): Command => ({
  check: (model) => model.isUp,
  run: (model, world) => {
    model.isUp = false;
    const outcomes = live(model).flatMap((feed): readonly feeds.Outcome[] => {
      if (feed.phase === 'open') return [feeds.failed(feed, now(), saysGoodbye ? means.shutdown : means.lost)];
      if (feed.phase === 'asking') return [feeds.failed(feed, now(), means.unreachableTicket)];
      return feed.phase === 'shaking' ? [feeds.failed(feed, now(), means.unreachableHandshake)] : [];
    });
    return expectOutcomes(model, world, outcomes, async () => {
      for (const stream of world.service.streams.values()) {
        if (saysGoodbye) stream.close(1001, 'server shutdown');
        else stream.reset();
      }
      await world.service.goDown();
    });
  },
  toString: () => (saysGoodbye ? 'the service shuts down' : 'the service crashes'),
});

const back: Command = {
  check: ({ isUp }) => !isUp,
  run: (model, world) => {
    model.isUp = true;
    return expectOutcomes(model, world, [], world.service.comeBack);
  },
  toString: () => 'the service is back',
};

const picks = fc.nat({ max: MOST_FEEDS - 1 });

const profiles: fc.Arbitrary<feeds.Profile> = fc.record({
  initialDelayMs: fc.constantFrom(1, 100, 500),
  maxDelayMs: fc.constantFrom(500, 30_000),
  stableAfterMs: fc.constantFrom(1, 5_000),
  maxAttempts: fc.constantFrom(2, Infinity, Infinity, Infinity),
  jitter: fc.constantFrom('full', 'equal', 'none'),
  drawn: fc.constantFrom(0, 0.3, 0.5, 0.999),
  ticketTimeoutMs: fc.constantFrom(3_000, 10_000),
  handshakeTimeoutMs: fc.constantFrom(3_000, 10_000),
  idleTimeoutMs: fc.constantFrom(0, 2_000, 30_000),
});

const whims: fc.Arbitrary<Whim> = fc.record({
  on: fc.constantFrom(...moments),
  does: fc.constantFrom('unsubscribe', 'throw in next', 'throw in an operator', 'block'),
});

/**
 * A sequence of what may happen to feeds, the ordinary more often than the rest.
 *
 * @param replayPath - as a failure prints it, to run what it was shrunk to
 */
export const sequences = (replayPath?: string): fc.Arbitrary<Iterable<Command>> =>
  // Without bias, which is towards the short.
  fc.noBias(
    fc.commands(
      [
        fc.oneof(
          { weight: 3, arbitrary: profiles.map(subscribe) },
          { weight: 1, arbitrary: picks.map(unsubscribe) },
          { weight: 2, arbitrary: fc.tuple(picks, whims).map(([pick, what]) => whim(pick, what)) },
          { weight: 2, arbitrary: fc.constantFrom(0, 0.5, 0.99, 1).map(time) },
          { weight: 24, arbitrary: fc.tuple(picks, deeds).map(([pick, what]) => happen(pick, what)) },
          { weight: 1, arbitrary: fc.boolean().map(outage) },
          { weight: 8, arbitrary: fc.constant(back) },
        ),
      ],
      { maxCommands: 60, size: 'max', ...(replayPath === undefined ? {} : { replayPath }) },
    ),
  );
