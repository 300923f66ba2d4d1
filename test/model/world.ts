import assert from 'node:assert/strict';
import { jest } from '@jest/globals';
import { TradeFeedError } from 'rx-trade-feed';
import type { HeldService } from '../support/held-service.js';
import type { Seen } from '../support/ten-rules/seen.js';
import { violations } from '../support/ten-rules/rules.js';
import { waitFor } from '../support/wait-for.js';
import { type Step, unreachableTicket } from './expected.js';
import * as feeds from './feed-model.js';
import { OwnError, type Watched } from './watched.js';

/** How long to wait for an expected result, in real ms. */
const LIMIT_MS = 20_000;

/** The real feeds and their service. */
export interface World {
  readonly service: HeldService;
  readonly watched: Map<number, Watched>;
  /** What reached the RxJS hook for unhandled errors. */
  readonly unhandled: unknown[];
}

/** The model of the feeds and the service. */
export interface Model {
  readonly feeds: Map<number, feeds.ModelFeed>;
  isUp: boolean;
  unhandled: number;
  /** How often each step and code was observed, over all sequences. */
  readonly tally: Map<string, number>;
}

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Advances the virtual clock, and reads sockets for one turn of the event loop after each timer. */
export const advance = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

export const stepsOf = (log: readonly Seen[]): readonly Step[] =>
  log.flatMap((seen): Step[] => {
    if (seen.what === 'event') return [seen.event.type];
    return seen.what === 'frame' || seen.what === 'errored' || seen.what === 'unsubscribed' ? [seen.what] : [];
  });

/** An attempt begins. If the service is down, it ends at once. */
export const begins = (model: Readonly<Model>, feed: feeds.ModelFeed, now: number): feeds.Outcome =>
  model.isUp
    ? feeds.requested(feed, now)
    : feeds.then(feeds.requested(feed, now), (next) => feeds.failed(next, now, unreachableTicket));

// A delay of 0 ms has no timer.
const withRenewal = (model: Readonly<Model>, outcome: feeds.Outcome, now: number): feeds.Outcome =>
  feeds.isAtOnce(outcome) ? feeds.then(outcome, (feed) => begins(model, feeds.waiting(feed, now, 0), now)) : outcome;

/** Acts, then checks that each feed emits exactly what the model predicts, the service agrees, and all rules hold. */
export const expectOutcomes = async (
  model: Model,
  world: World,
  outcomes: readonly feeds.Outcome[],
  act: () => void | Promise<void>,
  at = performance.now(),
): Promise<void> => {
  const before = new Map([...world.watched].map(([id, { log }]) => [id, log.length]));
  const since = (id: number) => (world.watched.get(id)?.log ?? []).slice(before.get(id) ?? 0);
  const whole = outcomes.map((outcome) => feeds.withReaction(withRenewal(model, outcome, at)));
  const expected = new Map(whole.map((outcome) => [outcome.feed.subscription, outcome]));
  await act();

  for (const [id, { steps }] of expected)
    await waitFor(() => stepsOf(since(id)).length >= steps.length, {
      what: () =>
        `feed ${id} should emit ${steps.join(', ')}, and emitted ${stepsOf(since(id)).join(', ') || 'nothing'}`,
      limitMs: LIMIT_MS,
    });
  for (const [id, outcome] of expected) {
    model.feeds.set(id, checked(since(id), outcome, performance.now()));
    const codes = outcome.ends?.map(({ failure }) => failure.code) ?? [];
    for (const what of ['steps', ...outcome.steps, ...codes]) model.tally.set(what, (model.tally.get(what) ?? 0) + 1);
    if (outcome.unhandled) model.unhandled += 1;
  }
  await settle(model, world);
  for (const id of world.watched.keys())
    assert.deepEqual(stepsOf(since(id)), expected.get(id)?.steps ?? [], `the steps of feed ${id}`);
  assert.ok(world.unhandled.length <= model.unhandled, 'an unhandled error that the consumer did not throw');
};

/** Checks the failures, delays and errors of the observed steps. Returns the feed with the delay that it reported. */
const checked = (
  seen: readonly Seen[],
  { feed, ends = [], endsWithOwn }: feeds.Outcome,
  now: number,
): feeds.ModelFeed => {
  const events = seen.flatMap((each) => (each.what === 'event' ? [each.event] : []));
  events.filter((event) => event.type === 'disconnected').forEach(({ failure }, n) => assertFailure(failure, ends[n]));
  events.filter((event) => event.type === 'stopped').forEach(({ failure }) => assertFailure(failure, ends.at(-1)));
  const waits = events.filter((event) => event.type === 'reconnecting');
  waits.forEach(({ delayMs }, n) => {
    const [least, most] = ends[n]?.waitMs ?? [NaN, NaN];
    assert.ok(delayMs >= least && delayMs <= most, `a wait of ${delayMs} ms, expected ${least} to ${most}`);
  });
  const last = seen.at(-1);
  if (last?.what === 'errored' && !endsWithOwn) assertFailure(last.error, ends.at(-1));
  if (last?.what === 'errored' && endsWithOwn)
    assert.ok(last.error instanceof OwnError, 'the error is an exception of the consumer');
  const wait = waits.at(-1);
  if (feed.phase !== 'waiting' || wait === undefined) return feed;
  assert.equal(wait.attempt, feed.last?.attempt, 'the number of the attempt');
  return feeds.waiting(feed, now, wait.delayMs);
};

const assertFailure = (error: unknown, end: feeds.End | undefined): void => {
  assert.ok(error instanceof TradeFeedError, `expected a failure, got ${String(error)}`);
  const { code, stage, verdict, uptimeMs } = error;
  const wanted = { uptimeMs, ...end?.failure };
  assert.deepEqual(
    { code, stage, verdict, uptimeMs },
    { code: wanted.code, stage: wanted.stage, verdict: wanted.verdict, uptimeMs: wanted.uptimeMs },
  );
};

/** Waits until each feed is in its phase at the service. Then checks the rules for the log. */
const settle = async (model: Model, { service, watched }: World): Promise<void> => {
  for (const { subscription: id, phase } of model.feeds.values()) {
    const { tickets: requesting, handshakes: handshaking, streams: open } = service;
    const isThere = { requesting, handshaking, open, waiting: undefined, over: undefined }[phase];
    const what = () => `feed ${id} should be ${phase} at the service`;
    if (isThere !== undefined) await waitFor(() => isThere.has(id), { what, limitMs: LIMIT_MS });
  }
  await turns(6);
  for (const [id, { log, facts }] of watched) {
    log.push({ what: 'settled', at: performance.now() });
    assert.deepEqual(violations(log, facts), [], `the rules for feed ${id}`);
  }
};

/** Ends all feeds, and checks that no socket or timer is left. */
export const endAll = async (model: Model, world: World): Promise<void> => {
  const { service, watched } = world;
  for (const { unsubscribe } of watched.values()) unsubscribe();
  for (const feed of model.feeds.values()) model.feeds.set(feed.subscription, { ...feed, phase: 'over' });
  // An unanswered closing handshake is aborted within a second.
  for (let i = 0; i < 4; i += 1) {
    await turns(3);
    await advance(500);
  }
  // RxJS reports a consumer's exception in a timer.
  assert.equal(world.unhandled.length, model.unhandled, 'unhandled errors');
  const left = { sockets: () => service.open.size, timers: () => jest.getTimerCount() };
  for (const [what, count] of Object.entries(left))
    await waitFor(() => count() === 0, { what: () => `${count()} ${what} are left`, limitMs: LIMIT_MS });
  await settle(model, world);
};
