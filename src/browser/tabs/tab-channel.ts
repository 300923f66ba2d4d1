import {
  defer,
  distinctUntilChanged,
  finalize,
  first,
  fromEvent,
  map,
  merge,
  Observable,
  share,
  startWith,
} from 'rxjs';

/** The messages between tabs: plain data, because a structured clone loses the class of an object. */
export type TabMessage =
  /** A follower asks for the state, to join or to see whether the leader is there. It knows a leader of this term. */
  | { readonly type: 'ask'; readonly term: number }
  /** A tab receives its own mark after all messages that were posted before it. */
  | { readonly type: 'mark'; readonly tab: string }
  | FromLeader;

/** The messages of a leader. Each leader has a higher term than the previous one. */
export type FromLeader = { readonly term: number } & (
  | Update
  /** A leader starts. */
  | { readonly type: 'leads' }
  /** The feed has ended, for all tabs: with a failure as JSON, or complete. */
  | { readonly type: 'ended'; readonly failure: string | undefined }
);

/** Events as lines. */
export interface Update {
  /** The state of the feed, for tabs that ask; or one message of the relay, or of the connection of the leader. */
  readonly type: 'welcome' | 'batch';
  /** The ids before and after the events. They are equal for events that are not from the relay. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly lines: readonly string[];
  /** How far the times of the stream are ahead: of the relay's clock, and of this machine's, in ms. */
  readonly shiftMs: number;
  readonly aheadMs: number;
  /** Set for lines of the relay, which have its clock: no lifecycle event is earlier than this, in epoch ms. */
  readonly ownAt?: number | undefined;
}

export type TabChannel = ReturnType<typeof openChannel>;

/** Opens the channel of a name. */
export const openChannel = (name: string) => {
  const channel = new BroadcastChannel(name);
  const messages$ = fromEvent(channel, 'message').pipe(
    map((event) => (event as unknown as { readonly data: TabMessage }).data),
    share(),
  );
  return {
    messages$,
    /** Emits once, after all messages that were posted before the subscription. */
    caughtUp$: defer(() => {
      // A `BroadcastChannel` does not receive the messages that it posts, so a second one posts the mark.
      const other = new BroadcastChannel(name);
      const tab = crypto.randomUUID();
      other.postMessage({ type: 'mark', tab });
      return messages$.pipe(
        first((message) => message.type === 'mark' && message.tab === tab),
        finalize(() => other.close()),
      );
    }),
    post: (message: TabMessage) => channel.postMessage(message),
    close: () => channel.close(),
  };
};

/** The part of a `LockManager` that this library uses. */
export interface Locks {
  request(
    name: string,
    options: { readonly signal: AbortSignal } | { readonly steal: true },
    callback: () => Promise<void> | undefined,
  ): Promise<unknown>;
  query(): Promise<{ readonly held: readonly { readonly name?: string; readonly clientId?: string }[] }>;
}

/** Returns the page that holds a lock. */
export const holderOf = async (locks: Locks, name: string): Promise<string | undefined> =>
  (await locks.query()).held.find((lock) => lock.name === name)?.clientId;

/**
 * Requests a lock of the browser (Web Locks), and holds it until the subscription ends. Emits once, when it is granted.
 * Completes when another tab has stolen it. Errors when the browser refuses locks to this page.
 */
export const tabLock$ = (locks: Locks, name: string, steal: boolean): Observable<void> =>
  new Observable((subscriber) => {
    const waiting = new AbortController();
    let isGranted = false;
    const granted = () => {
      // Unsubscribing does not abort a request that steals.
      if (subscriber.closed) return undefined;
      isGranted = true;
      const released = new Promise<void>((release) => subscriber.add(release));
      subscriber.next();
      return released;
    };
    locks
      .request(name, steal ? { steal } : { signal: waiting.signal }, granted)
      .catch((error: unknown) => (isGranted ? subscriber.complete() : subscriber.error(error)));
    subscriber.add(() => waiting.abort());
  });

/** Emits whether the scripts of a page run: `false` before the browser freezes, caches or unloads the page. */
export const pageActive$ = (page: EventTarget): Observable<boolean> =>
  merge(
    ...Object.entries(pageEvents).map(([type, isActive]) =>
      fromEvent(page, type, { capture: true }).pipe(map(() => isActive)),
    ),
  ).pipe(startWith(true), distinctUntilChanged());

// `freeze` and `resume` are events of the document. The window receives them in the capture phase.
const pageEvents = { pagehide: false, freeze: false, pageshow: true, resume: true };
