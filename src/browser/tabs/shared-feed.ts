import {
  catchError,
  concat,
  concatMap,
  defer,
  delayWhen,
  distinctUntilChanged,
  EMPTY,
  endWith,
  filter,
  finalize,
  first,
  fromEvent,
  ignoreElements,
  map,
  merge,
  NEVER,
  Observable,
  of,
  race,
  repeat,
  share,
  startWith,
  switchMap,
  take,
  takeWhile,
  tap,
  timeout,
  timer,
} from 'rxjs';
import { type Received, writeEventLine } from '../../protocol/event-line.js';
import { readFailure, TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { tryCall } from '../../protocol/type-guards.js';
import { type Locks, pageGlobals } from '../page-globals.js';
import type { RelayFeedSettings } from '../relay-feed-options.js';
import { type Input, type Role, roles, type TabMessage, TabState } from './tab-state.js';

/** What a tab emits in a role. `undefined`: the feed has completed. */
type Events$ = Observable<Received | undefined>;

/**
 * Receives a feed over one stream for all tabs of a browser with the same address.
 *
 * The tab that holds the address's lock leads: it receives the stream, and posts the events to the other tabs. When the
 * leader leaves, the next tab gets the lock and resumes at the id it has reached. A leader that doesn't answer loses
 * the lock. The feed ends in all tabs at once.
 *
 * A tab that hears no leader has a separate stream, until it can follow one without a loss. So have pages over plain
 * `http:` and Node, because they lack locks or a secure context.
 */
export const sharedFeed$ = (settings: RelayFeedSettings, pageFeed$: (tab: TabState) => Observable<Received>) =>
  defer(() => {
    const tab = new TabState(settings);
    const page$ = pageFeed$(tab);
    if (!pageGlobals.isSecureContext || pageGlobals.addEventListener === undefined) return page$;
    return pageActive$(pageGlobals as EventTarget).pipe(
      // A frozen page can neither lead nor read messages, so it leaves, and rejoins once it's active.
      switchMap((isActive) => (isActive ? member$(tab, settings, page$) : NEVER)),
      takeWhile((event) => event !== undefined),
      tap((event) => tab.emitted(event)),
    );
  });

/** Plays the role of a tab, which messages, the lock and time change. */
const member$ = (tab: TabState, settings: RelayFeedSettings, page$: Observable<Received>): Events$ =>
  defer(() => {
    // A browser can lack locks and channels, or refuse them, for example to a frame of another site.
    const room = tryCall(() => openRoom(settings.url));
    if (room === undefined) return page$.pipe(endWith(undefined));
    tab.role$.next('asking');
    const begun$ = tab.role$.pipe(distinctUntilChanged());
    return merge(
      ownStream$(tab, room, page$),
      begun$.pipe(concatMap((role) => begin(tab, room, role))),
      room.messages$.pipe(concatMap((message) => receive(tab, room, message))),
      merge(inputsOfLock$(tab, room, settings), silence$(tab, settings)).pipe(
        tap((name) => tab.input(name)),
        ignoreElements(),
      ),
    ).pipe(
      finalize(() => {
        tab.watcher = undefined;
        room.close();
      }),
    );
  });

/** Receives a stream while this tab leads, or hears no leader. */
const ownStream$ = (tab: TabState, { post }: Room, page$: Observable<Received>): Events$ => {
  const ended = (failure?: string) => {
    if (tab.role === 'leading') post({ type: 'ended', term: tab.term, failure });
  };
  const own$ = defer(() => concat(tab.interrupted('relay-lost'), page$)).pipe(
    tap({
      error: (error: unknown) => error instanceof TradeFeedError && ended(JSON.stringify(error)),
      complete: () => ended(),
    }),
    endWith(undefined),
  );
  return tab.role$.pipe(
    map((role) => role === 'alone' || role === 'claiming' || role === 'leading'),
    distinctUntilChanged(),
    switchMap((isOwn) => (isOwn ? own$ : EMPTY)),
  );
};

/** Does what begins with a role. Returns the events. */
const begin = (tab: TabState, { post }: Room, role: Role): readonly Received[] => {
  tab.watcher = undefined;
  if (role === 'asking' || role === 'checking') post({ type: 'ask', term: tab.term });
  if (role === 'asking') return tab.interrupted('relay-lost');
  if (role === 'doubting') return tab.interrupted('relay-stalled');
  if (role !== 'leading') return [];
  tab.lead();
  post({ type: 'leads', term: tab.term, isOpen: tab.isOpen });
  tab.watcher = {
    event: (event) => post(tab.update('batch', tab.id, [writeEventLine(event)])),
    message: (from, lines) => post(tab.update('batch', from, lines, tab.ownAt)),
  };
  return [];
};

/** Answers another tab, or emits the events that the leader posts. */
const receive = (tab: TabState, { post }: Room, message: TabMessage): Events$ => {
  const isLeader = tab.role === 'leading';
  // Answers at once, without a timer: those of a tab in the background may fire once a minute.
  if (message.type === 'ask' && isLeader) {
    if (message.term > tab.term) tab.lead(message.term);
    post(tab.welcome());
  }
  if (message.type === 'ask' || message.type === 'mark' || isLeader) return EMPTY;
  const isEarlier = message.term < tab.term;
  // If the clock was set back, the leader may have an earlier term than this tab: asking corrects it.
  if (message.type === 'leads' && (isEarlier || !tab.isFollower)) post({ type: 'ask', term: tab.term });
  if (isEarlier) return EMPTY;
  if (message.type === 'ended') {
    if (message.failure !== undefined) throw readFailure(JSON.parse(message.failure));
    return of(undefined);
  }
  const events$ = tab.receive(message);
  tab.input(events$ === undefined ? 'heard' : 'joined');
  return events$ ?? EMPTY;
};

/** Emits when the leader was silent for as long as the role waits for it. */
const silence$ = (tab: TabState, { scheduler }: RelayFeedSettings): Observable<Input> =>
  tab.role$.pipe(
    switchMap((role) => {
      const { silentMs } = roles[role];
      return silentMs === undefined ? EMPTY : timer(silentMs, scheduler);
    }),
    map(() => 'silent'),
  );

/** Requests the lock, or steals it. Emits when this tab gets it, and when another tab steals it. */
const inputsOfLock$ = (tab: TabState, room: Room, settings: RelayFeedSettings): Observable<Input> => {
  const { scheduler } = settings;
  // The lock may arrive before the previous leader's last messages. A channel that reaches nobody has none.
  const caughtUp$ = room.caughtUp$.pipe(
    timeout({ first: 1_000, scheduler }),
    catchError(() => EMPTY),
    ignoreElements(),
  );
  return race(room.lock$(), takeover$(tab, room, settings)).pipe(
    map((): Input => 'granted'),
    endWith('lost' as const),
    // It may be stolen while this tab waits for those messages.
    switchMap((name) => concat(name === 'granted' ? caughtUp$ : EMPTY, of(name))),
    repeat(),
    // Without the lock this tab can follow, or have its own stream.
    catchError(() => of('refused' as const)),
  );
};

/**
 * Steals the lock of a silent leader, once this tab has read everything that was posted before.
 *
 * One tab decides at a time, under a second lock, and only if the leader it doubts still leads. It requests the steal
 * before releasing that lock, so the next tab sees the new leader. A tab that has led or followed doesn't steal from a
 * leader that it never heard: in a browser whose channels don't connect tabs, they would steal in turn.
 */
const takeover$ = (tab: TabState, { lock$, leader, caughtUp$ }: Room, { scheduler }: RelayFeedSettings) => {
  const steals = (role: Role) => role === 'seizing' || (role === 'claiming' && tab.term === 0);
  // The deciding tab may be blocked as well: the others then use the next lock. Addresses contain no space.
  const deciding$ = (n = 1): Observable<void> => {
    const next$ = () => (n < mostBlocked ? deciding$(n + 1) : EMPTY);
    return lock$(` takeover ${n}`).pipe(timeout({ first: 1_000, scheduler, with: next$ }));
  };
  const decided$ = defer(leader).pipe(
    delayWhen(() => tab.role$.pipe(filter(steals))),
    delayWhen(() => caughtUp$),
    switchMap((silent) =>
      deciding$().pipe(
        switchMap(leader),
        take(1),
        filter((now) => now === silent),
      ),
    ),
  );
  return tab.role$.pipe(
    map((role) => role === 'doubting' || role === 'seizing' || role === 'alone' || role === 'claiming'),
    distinctUntilChanged(),
    switchMap((doubts) => (doubts ? decided$ : EMPTY)),
    take(1),
    switchMap(() => lock$('', true)),
    // A browser that can't steal: this tab has its own stream, or soon will.
    catchError(() => NEVER),
  );
};

/** If more tabs than this are blocked while they decide, or if no lock is granted, the others keep their own streams. */
const mostBlocked = 5;

type Room = ReturnType<typeof openRoom>;

/** Opens what the tabs of an address share: a channel, and locks. The tab that holds the lock without a suffix leads. */
const openRoom = (url: string) => {
  const locks = pageGlobals.navigator?.locks as Locks;
  // The number is the version of this protocol, because tabs with an older version of the app may be open.
  const name = `rx-trade-feed/tabs-5:${url}`;
  const channel = new BroadcastChannel(name);
  const messages$ = fromEvent(channel, 'message').pipe(
    map((event) => (event as Event & { readonly data: TabMessage }).data),
    share(),
  );
  return {
    messages$,
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
    /** A tab whose messages don't arrive isn't answered, or loses the lock. */
    post: (message: TabMessage) => tryCall(() => channel.postMessage(message)),
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
