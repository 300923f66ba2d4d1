import { catchError, concat, concatMap, defer, delayWhen, dematerialize, distinctUntilChanged, EMPTY } from 'rxjs';
import { endWith, filter, finalize, first, forkJoin, fromEvent, ignoreElements, map, materialize, merge } from 'rxjs';
import { NEVER, Observable, type ObservableNotification, of, race, repeat, share, startWith, switchMap } from 'rxjs';
import { take, tap, throwError, timeout, timer } from 'rxjs';
import { type Received, writeEventLine } from '../../protocol/event-line.js';
import { readFailure, TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { clampMs } from '../../protocol/validate.js';
import { type Locks, pageGlobals } from '../page-globals.js';
import type { RelayFeedSettings } from '../relay-feed-options.js';
import { ResumePoint } from '../resume-point.js';
import { type FromLeader, type LeaderLoss, type TabMessage, TabState } from './tab-state.js';

type Notification = ObservableNotification<Received>;
type PageFeed = (point: ResumePoint) => Observable<Received>;

/**
 * Receives a feed over one stream for all tabs of a browser with the same address.
 *
 * The tab that holds the address's lock leads: it receives the stream, and posts the events to the other tabs. When the
 * leader leaves, the next tab gets the lock and resumes at the id it has reached. A silent leader loses the lock. The
 * feed ends in all tabs at once. Pages over plain `http:`, and Node, have separate streams, because they lack locks or
 * a secure context.
 *
 * @param page$ - creates the stream of this page, which resumes at a point
 */
export const sharedFeed$ = (settings: RelayFeedSettings, page$: PageFeed): Observable<Received> =>
  defer(() => {
    const point = new ResumePoint(settings);
    const locks = pageGlobals.isSecureContext ? pageGlobals.navigator?.locks : undefined;
    if (locks === undefined) return page$(point);
    const tab = new TabState(point);
    return pageActive$(pageGlobals as EventTarget).pipe(
      // A frozen page can neither lead nor read messages, so it leaves, and rejoins once it's active.
      switchMap((isActive) => (isActive ? member$(tab, locks, settings, page$) : NEVER)),
      dematerialize(),
      tap((event) => tab.emitted(event)),
      // A browser can refuse locks and channels, for example to a frame of another site.
      catchError((error: unknown) => (error instanceof DOMException ? page$(point) : throwError(() => error))),
    );
  });

/** What a tab does: leads after losing the previous leader, follows, or leads no more because its lock was stolen. */
type Role = LeaderLoss | 'follower' | 'replaced';

const member$ = (tab: TabState, locks: Locks, settings: RelayFeedSettings, page$: PageFeed): Observable<Notification> =>
  defer(() => {
    // The number is the version of this protocol, because tabs with an older version of the app may be open.
    const name = `rx-trade-feed/tabs-5:${settings.url}`;
    const channel = openChannel(name);
    const lock$ = (steal: boolean, loss: LeaderLoss) => tabLock$(locks, name, steal).pipe(map((): Role => loss));
    return race(
      lock$(false, 'relay-lost'),
      takeover$(tab, channel, settings, locks, name).pipe(switchMap(() => lock$(true, 'relay-stalled'))),
    ).pipe(
      // The lock may arrive before the previous leader's last messages.
      delayWhen(() => channel.caughtUp$),
      startWith<Role>('follower'),
      endWith<Role>('replaced'),
      switchMap((role) => {
        if (role === 'replaced') return EMPTY;
        return role === 'follower' ? follow$(tab, channel) : lead$(tab, channel, role, page$);
      }),
      repeat(),
      finalize(() => channel.close()),
    );
  });

/** Emits the events that the leader posts. Asks each new leader until one answers. */
const follow$ = (tab: TabState, { messages$, post }: TabChannel): Observable<Notification> =>
  defer(() => {
    const ask = () => post({ type: 'ask', term: tab.term });
    tab.isWelcome = false;
    ask();
    return concat(
      of(...tab.interrupted('relay-lost')).pipe(map(nextOf)),
      messages$.pipe(
        filter(isOfLeader),
        concatMap((message) => {
          if (message.type === 'ended') return message.term < tab.term ? EMPTY : of(endOf(message.failure));
          // If the clock was set back, the leader may have an earlier term than this tab: asking corrects it.
          if (message.type === 'leads' && (!tab.isWelcome || message.term < tab.term)) ask();
          return tab.receive(message).pipe(map(nextOf));
        }),
      ),
    );
  });

/**
 * Emits once when this tab must take over: no answer from the leader within `idleTimeoutMs`, or `connectTimeoutMs` if
 * it has never answered.
 *
 * One tab decides at a time, under a second lock, and only if the leader it asked still leads. It requests the steal
 * before releasing that lock, so the next tab sees the new leader.
 */
const takeover$ = (
  tab: TabState,
  { messages$, post }: TabChannel,
  { connectTimeoutMs, idleTimeoutMs, scheduler }: RelayFeedSettings,
  locks: Locks,
  name: string,
): Observable<unknown> =>
  messages$.pipe(
    filter(isOfLeader),
    startWith(undefined),
    switchMap(() => {
      const half = clampMs((tab.isWelcome ? idleTimeoutMs : connectTimeoutMs) / 2);
      const wait$ = timer(half, scheduler);
      // The deciding tab may be blocked as well: the others then use the next lock. Addresses contain no space.
      const deciding$ = (n = 1): Observable<void> =>
        tabLock$(locks, `${name} takeover ${n}`, false).pipe(
          timeout({ first: half, scheduler, with: () => deciding$(n + 1) }),
        );
      return wait$.pipe(
        tap(() => post({ type: 'ask', term: tab.term })),
        // Two timers in a row: a page that was blocked reads its queued messages between them.
        switchMap(() => forkJoin([holderOf(locks, name), wait$])),
        switchMap(([silent]) =>
          deciding$().pipe(
            switchMap(() => holderOf(locks, name)),
            take(1),
            filter((leader) => leader === silent),
          ),
        ),
        repeat(),
      );
    }),
    take(1),
  );

/** Receives the stream, posts its messages, and answers tabs that join. */
const lead$ = (
  tab: TabState,
  { messages$, post }: TabChannel,
  loss: LeaderLoss,
  page$: PageFeed,
): Observable<Notification> =>
  defer(() => {
    tab.lead();
    const { point } = tab;
    const end = (error: unknown) => {
      if (error !== undefined && !(error instanceof TradeFeedError)) return;
      post({ type: 'ended', term: tab.term, failure: error && JSON.stringify(error) });
    };
    post({ type: 'leads', term: tab.term });
    point.watcher = {
      event: (event) => post(tab.update('batch', point.id, [writeEventLine(event)])),
      message: (from, lines) => post(tab.update('batch', from, lines, point.ownAt)),
    };
    return merge(
      messages$.pipe(
        tap((message) => {
          if (message.type !== 'ask') return;
          if (message.term > tab.term) tab.lead(message.term);
          post(tab.welcome());
        }),
        ignoreElements(),
      ),
      concat(tab.interrupted(loss), page$(point)).pipe(
        tap({ error: end, complete: () => end(undefined) }),
        materialize(),
      ),
    ).pipe(finalize(() => (point.watcher = undefined)));
  });

const isOfLeader = (message: TabMessage): message is FromLeader => 'term' in message && message.type !== 'ask';

const nextOf = (value: Received): Notification => ({ kind: 'N', value });

const endOf = (failure: string | undefined): Notification =>
  failure === undefined ? { kind: 'C' } : { kind: 'E', error: readFailure(JSON.parse(failure)) };

type TabChannel = ReturnType<typeof openChannel>;

const openChannel = (name: string) => {
  const channel = new BroadcastChannel(name);
  const messages$ = fromEvent(channel, 'message').pipe(
    map((event) => (event as unknown as { readonly data: TabMessage }).data),
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
    post: (message: TabMessage) => channel.postMessage(message),
    close: () => channel.close(),
  };
};

const holderOf = async (locks: Locks, name: string): Promise<string | undefined> =>
  (await locks.query()).held.find((lock) => lock.name === name)?.clientId;

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
  merge(
    ...Object.entries(pageEvents).map(([type, isActive]) =>
      fromEvent(page, type, { capture: true }).pipe(map(() => isActive)),
    ),
  ).pipe(startWith(true), distinctUntilChanged());

// `freeze` and `resume` fire on the document. The window gets them in the capture phase.
const pageEvents = { pagehide: false, freeze: false, pageshow: true, resume: true };
