import { defer, EMPTY, merge, type Observable, Subject, Subscription } from 'rxjs';
import type { AccountUser } from '../feed/accounts.js';
import type { TicketSettings } from '../feed/options.js';
import { feedEvents$, prepareConnections } from '../feed/trade-feed.js';
import type { FeedEvent, LifecycleEvent, Stopped, Watermark } from '../protocol/event.js';
import type { LogEntry } from '../protocol/event-record.js';
import { clusterMeanings } from '../protocol/failures/classify.js';
import { createFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { afterEvent, type FeedState, noFeed, stoppedAt } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import type { Input } from './election/election.js';
import type { FeedChannel } from './feed-channel.js';
import type { Follower } from './follower.js';

interface FeedRunParts {
  readonly channel: Pick<FeedChannel, 'frame' | 'event'> & { readonly follower: Pick<Follower, 'hasOpened'> };
  readonly input: (input: Input) => void;
  /** Shows an entry that the replica doesn't emit in the log and on the channels. */
  readonly show: (entry: LogEntry | Watermark) => void;
}

/**
 * The owner's connection to the service. Stays closed until `open`, but preloads what a connection needs, because a
 * takeover must be fast.
 */
export class FeedRun {
  /** The last error that reconnecting can't fix. */
  failure: unknown;
  readonly #parts: FeedRunParts;
  readonly #events$: Observable<FeedEvent>;
  readonly #allowed$ = new Subject<void>();
  #connection = new Subscription();
  /** What the feed has emitted. It outlives the subscription, because an owner that was replaced opens again. */
  #state: FeedState = noFeed;

  constructor(feed: Feed, settings: TicketSettings, user: AccountUser, parts: FeedRunParts) {
    const asked$ = defer(() => {
      parts.input({ type: 'handshake' });
      return EMPTY;
    });
    // Events are shown when the replica emits them. It doesn't emit an exception of the app.
    const show = (entry: LogEntry): void => {
      const isException = entry.type === 'stopped' && entry.failure.code === 'relay-source-failed';
      if (entry.type === 'waiting' || isException) parts.show(entry);
    };
    const owner = {
      user,
      beforeHandshake: merge(this.#allowed$, asked$),
      show,
      before: () => (this.#state = stateBefore(this.#state, Date.now(), parts.channel.follower.hasOpened)),
    };
    this.#events$ = feedEvents$(feed, { ...settings, classify: withAccess(settings.classify) }, owner);
    this.#parts = parts;
    // Opening a connection reports the failure again.
    prepareConnections().catch(() => undefined);
  }

  open(): void {
    this.#connection.unsubscribe();
    this.#connection = new Subscription();
    const events = this.#events$.subscribe({
      next: (each) => (each.type === 'frame' ? this.#parts.channel.frame(each) : this.#receive(each)),
      error: (error: unknown) => this.#fail(error),
    });
    this.#connection.add(events);
  }

  allow(): void {
    this.#allowed$.next();
  }

  close(): void {
    this.#state = noFeed;
    this.#connection.unsubscribe();
  }

  #receive(each: LifecycleEvent): void {
    const { input } = this.#parts;
    const connection = this.#connection;
    if (each.type === 'stopped') return this.#reportStop(each);
    if (each.type === 'disconnected') {
      const { stage, status } = each.failure;
      input({ type: 'disconnected', isUnanswered: stage === 'handshake' && status === undefined });
    }
    if (each.type === 'opened') input({ type: 'opened' });
    // The election may have closed this feed.
    if (connection.closed) return this.#parts.show(each);
    this.#state = afterEvent(this.#state, each, undefined);
    this.#emit(each);
  }

  /** Reports to all replicas why the feed ended, unless another client did it: the election decides about that. */
  #reportStop(event: Stopped): void {
    const { at, failure } = event;
    this.#state = afterEvent(this.#state, event, undefined);
    if (failure.code === 'connection-replaced') return;
    this.#emit({ type: 'disconnected', at, failure });
    this.#emit({ type: 'reconnecting', at, delayMs: 0, attempt: 1, verdict: failure.verdict });
  }

  #emit(event: LifecycleEvent): void {
    // If this replica emits it, it's shown then.
    if (!this.#parts.channel.event(event)) this.#parts.show(event);
  }

  #fail(error: unknown): void {
    const isReplaced = error instanceof TradeFeedError && error.code === 'connection-replaced';
    if (!isReplaced) {
      this.#state = noFeed;
      this.failure = error;
    }
    this.#parts.input({ type: 'failed', isReplaced });
  }
}

/**
 * Returns the state before an owner's subscription: with the outage of the hand-over, until a connection is complete;
 * later with its own one.
 *
 * @param hasOpened - whether any owner's connection has opened
 */
export const stateBefore = ({ outage }: FeedState, now: number, hasOpened: boolean): FeedState => {
  const failure = outage?.failure ?? createFailure(clusterMeanings.ownerChanged, { stage: 'stream', endedAt: now });
  return stoppedAt(outage?.from ?? now, failure, hasOpened);
};

// A 403 concerns the account, so no other candidate does better. The owner retries until access is restored.
const withAccess =
  (classify: TicketSettings['classify']): TicketSettings['classify'] =>
  (failure, verdict) => {
    const ours = failure.code === 'not-entitled' ? 'backoff' : verdict;
    return classify === undefined ? ours : classify(failure, ours);
  };
