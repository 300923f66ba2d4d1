import { catchError, concat, concatMap, defer, distinctUntilChanged, EMPTY, endWith } from 'rxjs';
import { filter, finalize, first, forkJoin, fromEvent, ignoreElements, map, merge, NEVER, Observable } from 'rxjs';
import { race, repeat, share, startWith, switchAll, switchMap, take, takeUntil, takeWhile, tap, timeout } from 'rxjs';
import { throwError, timer } from 'rxjs';
import { type Received, writeEventLine } from '../../protocol/event-line.js';
import { readFailure, TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { clampMs } from '../../protocol/validate.js';
import { type Locks, pageGlobals } from '../page-globals.js';
import type { DetectedCode } from '../relay-connection.js';
import type { RelayFeedSettings } from '../relay-feed-options.js';
import { type TabMessage, TabState } from './tab-state.js';

/** What a tab emits in a role. `undefined`: the feed has completed, for all tabs. */
type Events$ = Observable<Received | undefined>;

/**
 * Receives a feed over one stream for all tabs of a browser with the same address.
 *
 * The tab that holds the address's lock leads: it receives the stream, and posts the events to the other tabs. When the
 * leader leaves, the next tab gets the lock and resumes at the id it has reached. A silent leader loses the lock. The
 * feed ends in all tabs at once. Pages over plain `http:`, and Node, have separate streams, because they lack locks or
 * a secure context.
 */
export const sharedFeed$ = (settings: RelayFeedSettings, pageFeed$: (tab: TabState) => Observable<Received>) =>
  defer(() => {
    const tab = new TabState(settings);
    const page$ = pageFeed$(tab);
    const locks = pageGlobals.isSecureContext ? pageGlobals.navigator?.locks : undefined;
    if (locks === undefined) return page$;
    return pageActive$(pageGlobals as EventTarget).pipe(
      // A frozen page can neither lead nor read messages, so it leaves, and rejoins once it's active.
      switchMap((isActive) => (isActive ? member$(tab, locks, settings, page$) : NEVER)),
      takeWhile((event) => event !== undefined),
      tap((event) => tab.emitted(event)),
      // A browser can refuse locks and channels, for example to a frame of another site.
      catchError((error: unknown) => (error instanceof DOMException ? page$ : throwError(() => error))),
    );
  });

/** Follows until this tab gets the lock, then leads until another tab steals the lock, and so on. */
const member$ = (tab: TabState, locks: Locks, settings: RelayFeedSettings, page$: Observable<Received>): Events$ =>
  defer(() => {
    const room = openRoom(locks, settings.url);
    return race(
      room.lock$().pipe(map(() => lead$(tab, room, 'relay-lost', page$))),
      takeover$(tab, room, settings).pipe(map(() => lead$(tab, room, 'relay-stalled', page$))),
    ).pipe(
      // The lock may arrive before the previous leader's last messages, and be stolen while this tab waits for them.
      endWith(undefined),
      switchMap((leads$) => (leads$ === undefined ? EMPTY : room.caughtUp$.pipe(map(() => leads$)))),
      startWith(follow$(tab, room)),
      repeat(),
      switchAll(),
      finalize(() => room.close()),
    );
  });

/** Emits the events that the leader posts. Asks each new leader until one answers. */
const follow$ = (tab: TabState, { ofLeader$, post }: Room): Events$ =>
  defer(() => {
    const ask = () => post({ type: 'ask', term: tab.term });
    tab.isWelcome = false;
    ask();
    return concat(
      tab.interrupted('relay-lost'),
      ofLeader$.pipe(
        concatMap((message) => {
          // If the clock was set back, the leader may have an earlier term than this tab: asking corrects it.
          if (message.type === 'leads' && (!tab.isWelcome || message.term < tab.term)) ask();
          if (message.term < tab.term) return EMPTY;
          if (message.type !== 'ended') return tab.receive(message);
          if (message.failure !== undefined) throw readFailure(JSON.parse(message.failure));
          return [undefined];
        }),
      ),
    );
  });

/**
 * Steals the lock of a silent leader: one that doesn't answer within `idleTimeoutMs`, or within `connectTimeoutMs` if
 * none has ever answered.
 *
 * One tab decides at a time, under a second lock, and only if the leader it asked still leads. It requests the steal
 * before releasing that lock, so the next tab sees the new leader.
 */
const takeover$ = (tab: TabState, { ofLeader$, post, lock$, leader }: Room, settings: RelayFeedSettings) =>
  defer(() => {
    const { connectTimeoutMs, idleTimeoutMs, scheduler } = settings;
    const half = clampMs((tab.isWelcome ? idleTimeoutMs : connectTimeoutMs) / 2);
    const wait$ = timer(half, scheduler);
    // The deciding tab may be blocked as well: the others then use the next lock. Addresses contain no space.
    const deciding$ = (n = 1): Observable<void> =>
      lock$(` takeover ${n}`).pipe(timeout({ first: half, scheduler, with: () => deciding$(n + 1) }));
    const decided$ = deciding$().pipe(switchMap(leader), take(1));
    return wait$.pipe(
      tap(() => post({ type: 'ask', term: tab.term })),
      // Two timers in a row: a page that was blocked reads its queued messages between them.
      switchMap(() => forkJoin([leader(), wait$])),
      switchMap(([silent]) => decided$.pipe(filter((now) => now === silent))),
      takeUntil(ofLeader$),
    );
  }).pipe(
    repeat(),
    take(1),
    switchMap(() => lock$('', true)),
  );

/** Receives the stream, posts its messages, and answers tabs that join. */
const lead$ = (tab: TabState, { messages$, post }: Room, loss: DetectedCode, page$: Observable<Received>): Events$ =>
  defer(() => {
    const ended = (failure?: string) => post({ type: 'ended', term: tab.term, failure });
    tab.lead();
    post({ type: 'leads', term: tab.term });
    tab.watcher = {
      event: (event) => post(tab.update('batch', tab.id, [writeEventLine(event)])),
      message: (from, lines) => post(tab.update('batch', from, lines, tab.ownAt)),
    };
    const answers$ = messages$.pipe(
      tap((message) => {
        if (message.type !== 'ask') return;
        if (message.term > tab.term) tab.lead(message.term);
        post(tab.welcome());
      }),
      ignoreElements(),
    );
    const feed$ = concat(tab.interrupted(loss), page$).pipe(
      tap({
        error: (error: unknown) => error instanceof TradeFeedError && ended(JSON.stringify(error)),
        complete: () => ended(),
      }),
      endWith(undefined),
    );
    return merge(answers$, feed$).pipe(finalize(() => (tab.watcher = undefined)));
  });

type Room = ReturnType<typeof openRoom>;

/** Opens what the tabs of an address share: a channel, and locks. The tab that holds the lock without a suffix leads. */
const openRoom = (locks: Locks, url: string) => {
  // The number is the version of this protocol, because tabs with an older version of the app may be open.
  const name = `rx-trade-feed/tabs-5:${url}`;
  const channel = new BroadcastChannel(name);
  const messages$ = fromEvent(channel, 'message').pipe(
    map((event) => (event as Event & { readonly data: TabMessage }).data),
    share(),
  );
  return {
    messages$,
    ofLeader$: messages$.pipe(filter((message) => message.type !== 'ask' && message.type !== 'mark')),
    /** Emits once, after every message posted before the subscription. */
    caughtUp$: defer(() => {
      // A `BroadcastChannel` doesn't receive its own messages, so a second one posts the mark.
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
    lock$: (suffix = '', steal = false) => tabLock$(locks, name + suffix, steal),
    leader: async () => (await locks.query()).held.find((lock) => lock.name === name)?.clientId,
  };
};

/**
 * Requests a lock of the browser (Web Locks), and holds it until unsubscribed. Emits once, when it's granted. Completes
 * when another tab steals it. Errors when the browser refuses locks to this page.
 */
const tabLock$ = (locks: Locks, name: string, steal: boolean): Observable<void> =>
  new Observable((subscriber) => {
    const waiting = new AbortController();
    let isGranted = false;
    const granted = () => {
      // Unsubscribing doesn't abort a request that steals.
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

/** Emits whether the page's scripts run: `false` before the browser freezes, caches or unloads the page. */
const pageActive$ = (page: EventTarget): Observable<boolean> =>
  // `freeze` and `resume` fire on the document. The window gets them in the capture phase.
  merge(...['pagehide', 'freeze', 'pageshow', 'resume'].map((type) => fromEvent(page, type, { capture: true }))).pipe(
    map(({ type }) => type === 'pageshow' || type === 'resume'),
    startWith(true),
    distinctUntilChanged(),
  );
