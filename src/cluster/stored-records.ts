// What the store of a cluster's line has after a place, for the pages of a relay.
//
// In: the messages of owners, and a page's place. Out: frames as the lines that pages receive, and events.
// Never: missing records without a gap in their place, or much more than 128 KiB at once.
import type { Disconnected, LifecycleEvent } from '../protocol/event.js';
import { clusterMeanings } from '../protocol/failures/classify.js';
import { createFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type Outage, relayGap, withGapIn } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import { between, missedBetween, nextOffset, type Place, type StoredLine } from '../protocol/place.js';
import { type LineStore, newestFrom, reaches } from '../log/line-store.js';
import { PageRecords, partBytes } from '../log/page-records.js';
import type { ClusterSettings } from './cluster-options.js';
import { Follower, isComplete, placeOf } from './follower.js';
import { Decoder, type FeedMessage, hasConnection, headOf, isEvent, isStatus } from './messages.js';

/** So many records before a place say what the connection was there, and why the last one ended. */
const statusRecords = 64;

/** Reads what the store of a cluster has after a place. Each call counts its connections from 1. */
export const storedRecords = (
  feed: Feed,
  { account, engine, line, feed: { maxFrameBytes } }: ClusterSettings,
): StoredLine['stored'] => {
  let opened: LineStore | undefined;
  return async function* (after, { maxBytes, signal, isNext = false }) {
    const store = (opened ??= engine.line?.({ ...line, kind: 'line', name: account, headOf }));
    if (store === undefined) return;
    const isAborted = (): boolean => signal.aborted;
    const newest = await newestFrom(store, maxBytes);
    const last = newest === undefined ? undefined : await store.last();
    const isCut = newest !== undefined && newest > (last ? nextOffset(after, last) : after.offset);
    const from = isCut ? newest : after.offset;
    const holes = isCut ? await holesAt(store, after, signal) : after.holes || 0;
    const begun = { ...after, holes };
    const gathered = new PageRecords();
    const follower = new Follower(feed, (event) => gathered.add(event));
    const status = new Status(feed);
    const begin = (message?: FeedMessage): void => {
      const place = isCut && message ? placeOf(message) : { ...begun, holes: holes || 0 };
      const events = status.before(message, place);
      if (isCut) gathered.add(...withGapIn(events, cutBetween(begun, message ?? place)));
      else if (!isNext) gathered.add(...events);
      follower.resume(place, status);
    };
    const decoder = new Decoder(feed, maxFrameBytes, () => '');
    for await (const message of messagesFrom(store, decoder, isCut ? undefined : begun, from, signal)) {
      if (isAborted() || message.line !== after.line) return;
      const isBefore = isCut ? !reaches(message, from) : between(begun, message).type === 'old';
      if (follower.line === undefined && isBefore) {
        status.add(message);
        continue;
      }
      if (follower.line === undefined) begin(message);
      follower.receive(message, 0, 'past');
      if (gathered.bytes >= partBytes) yield gathered.take(follower.line ?? after);
    }
    const isKnown = follower.line !== undefined || (status.last !== undefined && !isCut);
    if (isAborted() || !isKnown) return;
    if (follower.line === undefined) begin();
    const end = follower.line ?? after;
    if (!gathered.isEmpty || end.gen > after.gen) yield gathered.take(end);
  };
};

/** An id of a message has no holes. The store may know them. NaN if it doesn't. */
const holesAt = async (store: LineStore, { line, gen, offset }: Place, signal: AbortSignal): Promise<number> => {
  for await (const bytes of store.read(Math.max(0, offset - 1), signal)) {
    const head = headOf(bytes);
    return head?.line === line && head.gen === gen && head.offset <= offset ? head.holes : NaN;
  }
  return NaN;
};

const cutBetween = (after: Place, begin: Place) => {
  const frames = missedBetween(after, begin);
  return relayGap({ from: after.complete, to: Math.max(after.at, begin.at), frames });
};

/**
 * Reads the messages from an offset on, and some before, until the store ends. Some come twice.
 *
 * @param after - what must be there in full
 */
async function* messagesFrom(
  store: LineStore,
  decoder: Decoder,
  after: Place | undefined,
  from: number,
  signal: AbortSignal,
): AsyncIterable<FeedMessage> {
  for await (const bytes of store.read(Math.max(0, from - statusRecords), signal)) {
    const message = decoder.decode(bytes);
    if (message === undefined) continue;
    const answer = between(after, message);
    // Only here it shows that a later generation began earlier: the page has records that the line doesn't have.
    if (answer.type === 'hole' && answer.from < from) {
      yield* messagesFrom(store, decoder, after, answer.from, signal);
      return;
    }
    yield message;
  }
}

/** What the connection was at a place. */
class Status {
  readonly #feed: Feed;
  /** The message before the place. */
  last: FeedMessage | undefined;
  owner = '';
  isOpen = false;
  outage: Pick<Outage, 'from' | 'failure'> | undefined;
  #lost: TradeFeedError | undefined;

  constructor(feed: Feed) {
    this.#feed = feed;
  }

  /** Adds a message that is before the place. */
  add(message: FeedMessage): void {
    const { last } = this;
    this.last = message;
    if (last && last.gen !== message.gen)
      this.#lost = createFailure(clusterMeanings.ownerChanged, { stage: 'stream', endedAt: last.complete });
    if (message.settling === undefined) this.#lost = undefined;
    if (isEvent(message, 'disconnected')) this.#lost ??= lostBy(message.event);
  }

  /** Returns the events that say what the connection was. @param next - the message at the place */
  before(next: FeedMessage | undefined, place: Place): readonly LifecycleEvent[] {
    const known = this.last?.gen === place.gen ? this.last : undefined;
    const same = next?.gen === place.gen ? next : undefined;
    this.owner = (same ?? known)?.owner ?? '';
    this.isOpen = known ? hasConnection(known) : same ? wasConnected(same) : isComplete(place);
    const { settling } = known ?? same ?? { settling: isComplete(place) ? undefined : 'auto' };
    // Before a gap, the connection wasn't complete.
    const isSettled = settling === undefined && (known !== undefined || !(same && isEvent(same, 'gap')));
    this.outage = this.isOpen && isSettled ? undefined : this.#outageAt(place);
    const completeFrom = isSettled ? place.at : settling;
    const opened: LifecycleEvent = { type: 'opened', at: place.at, feed: this.#feed, connection: 1 };
    if (typeof completeFrom === 'number' && this.isOpen) return [{ ...opened, completeFrom }];
    const { from: at = place.at, failure } = this.outage ?? {};
    const lost: readonly LifecycleEvent[] = failure ? [{ type: 'disconnected', at, failure }] : [];
    return this.isOpen ? [...lost, opened] : lost;
  }

  #outageAt({ complete, frames, holes }: Place): typeof this.outage {
    const failure = this.#lost;
    if (failure) return { from: Math.max(complete, failure.endedAt), failure };
    // Before the first connection of a line, nothing is missing.
    if (frames === 0 && holes === 0) return undefined;
    return { from: complete, failure: createFailure(clusterMeanings.behind, { stage: 'stream', endedAt: complete }) };
  }
}

/** Whether its owner was connected before a message. */
const wasConnected = (message: FeedMessage): boolean => {
  if (!isStatus(message)) return hasConnection(message);
  return message.event.type === 'disconnected' && lostBy(message.event) !== undefined;
};

/** The failure of an open connection. */
const lostBy = ({ failure }: Disconnected): TradeFeedError | undefined =>
  failure.stage === 'stream' ? failure : undefined;
