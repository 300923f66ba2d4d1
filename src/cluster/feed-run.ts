import { defer, EMPTY, merge, type Observable, Subject, Subscription } from 'rxjs';
import type { AccountUser } from '../feed/accounts.js';
import type { TicketSettings } from '../feed/options.js';
import { feedEvents$, prepareConnections } from '../feed/trade-feed.js';
import type { FeedEvent, LifecycleEvent, Stopped } from '../protocol/event.js';
import type { LogEntry, LoggableEvent } from '../protocol/event-record.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { createGap } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import type { Input } from './election/election.js';

interface FeedRunHandlers {
  readonly input: (input: Input) => void;
  readonly frame: (frame: Frame) => void;
  readonly event: (event: LifecycleEvent) => void;
  /** Receives what the log and the channels show of the connection. */
  readonly show: (entry: LogEntry) => void;
}

/**
 * The owner's connection to the service. Stays closed until `open`, but preloads what a connection needs, because a
 * takeover must be fast.
 */
export class FeedRun {
  /** The last error that reconnecting can't fix. */
  failure: unknown;
  readonly #handlers: FeedRunHandlers;
  readonly #events$: Observable<FeedEvent>;
  readonly #allowed$ = new Subject<void>();
  #connection = new Subscription();
  /** The failure that replaced the last connection, until the next one is open. */
  #replaced: TradeFeedError | undefined;

  constructor(feed: Feed, settings: TicketSettings, user: AccountUser, handlers: FeedRunHandlers) {
    const asked$ = defer(() => {
      handlers.input({ type: 'handshake' });
      return EMPTY;
    });
    // After a stop of its feed, the cluster continues. But nothing else shows an exception of the app.
    const show = (entry: LogEntry): void => {
      if (entry.type !== 'stopped' || entry.failure.code === 'relay-source-failed') handlers.show(entry);
    };
    const owner = { user, beforeHandshake: merge(this.#allowed$, asked$), show };
    this.#events$ = feedEvents$(feed, { ...settings, classify: withAccess(settings.classify) }, owner);
    this.#handlers = handlers;
    // Opening a connection reports the failure again.
    prepareConnections().catch(() => undefined);
  }

  open(): void {
    this.#connection.unsubscribe();
    this.#connection = new Subscription();
    const events = this.#events$.subscribe({
      next: (each) => (each.type === 'frame' ? this.#handlers.frame(each) : this.#receive(each)),
      error: (error: unknown) => this.#fail(error),
    });
    this.#connection.add(events);
  }

  allow(): void {
    this.#allowed$.next();
  }

  close(): void {
    this.#replaced = undefined;
    this.#connection.unsubscribe();
  }

  #receive(each: LifecycleEvent): void {
    const { input, event } = this.#handlers;
    const connection = this.#connection;
    if (each.type === 'stopped') return this.#reportStop(each);
    if (each.type === 'disconnected') {
      const { stage, status } = each.failure;
      input({ type: 'disconnected', isUnanswered: stage === 'handshake' && status === undefined });
    }
    if (each.type === 'opened') input({ type: 'opened' });
    // The election may have closed this feed.
    if (connection.closed) return;
    event(each);
    if (each.type !== 'opened' || this.#replaced === undefined) return;
    this.#make(createGap(this.#replaced.endedAt, each.at, this.#replaced));
    this.#replaced = undefined;
  }

  /** Reports to all replicas why the feed ended, unless another client did it: the election decides about that. */
  #reportStop({ at, failure }: Stopped): void {
    if (failure.code === 'connection-replaced') return;
    this.#make({ type: 'disconnected', at, failure });
    this.#make({ type: 'reconnecting', at, delayMs: 0, attempt: 1, verdict: failure.verdict });
  }

  /** Adds an event that the feed itself neither emits nor shows. */
  #make(event: LoggableEvent & LifecycleEvent): void {
    this.#handlers.show(event);
    this.#handlers.event(event);
  }

  #fail(error: unknown): void {
    const isReplaced = error instanceof TradeFeedError && error.code === 'connection-replaced';
    if (isReplaced) this.#replaced = error;
    else this.failure = error;
    this.#handlers.input({ type: 'failed', isReplaced });
  }
}

// A 403 concerns the account, so no other candidate does better. The owner retries until access is restored.
const withAccess =
  (classify: TicketSettings['classify']): TicketSettings['classify'] =>
  (failure, verdict) => {
    const ours = failure.code === 'not-entitled' ? 'backoff' : verdict;
    return classify === undefined ? ours : classify(failure, ours);
  };
