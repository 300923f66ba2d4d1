import fc, { type AsyncCommand } from 'fast-check';
import * as means from './expected.js';
import * as feeds from './feed-model.js';
import { type ServiceActions, serviceActions } from './service-actions.js';
import { moments, type Reaction, watch } from './watched.js';
import { advance, begins, expectOutcomes, type Model, type World } from './world.js';

type Feed = feeds.ModelFeed;
type Command = AsyncCommand<Model, World>;

const MOST_FEEDS = 3;
const now = (): number => performance.now();
const live = (model: Readonly<Model>): readonly Feed[] =>
  [...model.feeds.values()].filter(({ phase }) => phase !== 'over');

/** Runs the service action for a feed's phase. Advances the time if the feed waits or gets no answers anymore. */
const act = (pick: number, actions: ServiceActions): Command => {
  const picked = (model: Readonly<Model>) => live(model)[pick % live(model).length];
  const actionFor = ({ phase, isMute }: Feed) =>
    phase === 'waiting' || phase === 'over' || (phase === 'open' && isMute) ? undefined : actions[phase];
  let done = '';
  return {
    check: (model) => {
      const feed = picked(model);
      return feed !== undefined && (actionFor(feed)?.may?.(feed) ?? true);
    },
    run: (model, world) => {
      const feed = picked(model) as Feed;
      const action = actionFor(feed);
      done = action ? `${action.name} [${feed.phase} ${feed.subscription}]` : 'time advances';
      return action
        ? expectOutcomes(model, world, [action.change(feed, now(), world)], () => action.act(feed, world))
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
    const { ticketTimeoutMs, handshakeTimeoutMs, idleTimeoutMs, drawn, ...backoff } = profile;
    const options = {
      ...{ baseUrl: world.service.baseUrl, ticketTimeoutMs, handshakeTimeoutMs, idleTimeoutMs, maxFrameBytes: 100_000 },
      // The model has no delay: `test/feed/continuity` has both plans.
      ...{ deliveryDelayMs: 0, backoff: { ...backoff, random: () => drawn } },
    };
    const begun = [begins(model, feed, now())];
    return expectOutcomes(model, world, begun, () => void world.watched.set(id, watch(id, options)));
  },
  toString: () => `subscribe ${JSON.stringify(profile)}`,
});

const unsubscribe = (pick: number): Command => ({
  check: (model) => live(model).length > 0,
  run: (model, world) => {
    const feed = live(model)[pick % live(model).length] as Feed;
    const over = { ...feed, phase: 'over', dueAt: Infinity, reaction: undefined } as const;
    return expectOutcomes(model, world, [{ feed: over, steps: ['unsubscribed'] }], () =>
      world.watched.get(feed.subscription)?.unsubscribe(),
    );
  },
  toString: () => `unsubscribe [${pick}]`,
});

const react = (pick: number, reaction: Reaction): Command => ({
  check: (model) => live(model).length > 0,
  run: (model, world) => {
    const feed = live(model)[pick % live(model).length] as Feed;
    return expectOutcomes(model, world, [{ feed: { ...feed, reaction }, steps: [] }], () => {
      const watched = world.watched.get(feed.subscription);
      if (watched) watched.reaction = reaction;
    });
  },
  toString: () => `at the next ${reaction.on}: ${reaction.does} [${pick}]`,
});

/** Advances the time to the next timer, or part of the way there. */
const time = (share: number): Command => ({
  check: (model) => live(model).some(({ dueAt }) => dueAt < Infinity),
  run: (model, world) => {
    const dueAt = Math.min(...live(model).map((feed) => feed.dueAt));
    const ms = share === 1 ? dueAt - now() : Math.floor((dueAt - now()) * share);
    const at = now() + ms;
    const outcomes = live(model)
      .filter((feed) => feed.dueAt <= at)
      .map((feed) => timerFires(model, feed, at));
    return expectOutcomes(model, world, outcomes, () => advance(ms), at);
  },
  toString: () => (share === 1 ? 'time advances' : `time advances, by a share of ${share}`),
});

const timerFires = (model: Readonly<Model>, feed: Feed, at: number): feeds.Outcome => {
  if (feed.phase === 'waiting') return begins(model, feed, at);
  if (feed.phase === 'requesting') return feeds.failed(feed, at, means.unreachableTicket);
  if (feed.phase === 'handshaking')
    return feeds.failed(feed, at, feed.expires ? means.expiredTicket : means.unreachableHandshake);
  return feeds.silent(feed, at, means.stalled);
};

/** Stops the service, with or without a close frame on all open connections. */
const stop = (sendsClose: boolean): Command => ({
  check: (model) => model.isUp,
  run: (model, world) => {
    model.isUp = false;
    const outcomes = live(model).flatMap((feed): readonly feeds.Outcome[] => {
      if (feed.phase === 'open') return [feeds.failed(feed, now(), sendsClose ? means.shutdown : means.lost)];
      if (feed.phase === 'requesting') return [feeds.failed(feed, now(), means.unreachableTicket)];
      return feed.phase === 'handshaking' ? [feeds.failed(feed, now(), means.unreachableHandshake)] : [];
    });
    return expectOutcomes(model, world, outcomes, async () => {
      for (const stream of world.service.streams.values()) {
        if (sendsClose) stream.close(1001, 'server shutdown');
        else stream.reset();
      }
      await world.service.goDown();
    });
  },
  toString: () => (sendsClose ? 'the service shuts down' : 'the service crashes'),
});

const restart: Command = {
  check: ({ isUp }) => !isUp,
  run: (model, world) => {
    model.isUp = true;
    return expectOutcomes(model, world, [], world.service.comeBack);
  },
  toString: () => 'the service starts again',
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

const reactions: fc.Arbitrary<Reaction> = fc.record({
  on: fc.constantFrom(...moments),
  does: fc.constantFrom('unsubscribe', 'throw in next', 'throw in an operator', 'block'),
});

/**
 * Creates sequences of commands, with more normal actions than faults.
 *
 * @param replayPath - from the output of a failure, to rerun the shrunk sequence
 */
export const sequences = (replayPath?: string): fc.Arbitrary<Iterable<Command>> =>
  // No bias: it would prefer short sequences.
  fc.noBias(
    fc.commands(
      [
        fc.oneof(
          { weight: 3, arbitrary: profiles.map(subscribe) },
          { weight: 1, arbitrary: picks.map(unsubscribe) },
          { weight: 2, arbitrary: fc.tuple(picks, reactions).map(([pick, reaction]) => react(pick, reaction)) },
          { weight: 2, arbitrary: fc.constantFrom(0, 0.5, 0.99, 1).map(time) },
          { weight: 24, arbitrary: fc.tuple(picks, serviceActions).map(([pick, actions]) => act(pick, actions)) },
          { weight: 1, arbitrary: fc.boolean().map(stop) },
          { weight: 8, arbitrary: fc.constant(restart) },
        ),
      ],
      { maxCommands: 60, size: 'max', ...(replayPath === undefined ? {} : { replayPath }) },
    ),
  );
