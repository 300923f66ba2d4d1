import { concat, concatMap, defer, EMPTY, filter, ignoreElements, map, type Observable, of, startWith } from 'rxjs';
import { switchMap, take, tap, timer } from 'rxjs';
import { clampMs } from '../../protocol/rules.js';
import type { RelayFeedSettings } from '../relay-feed-options.js';
import { ending, type Notification, nextOf } from './notification.js';
import type { Tab } from './tab.js';
import type { TabChannel } from './tab-channel.js';
import type { FromLeader, TabMessage } from './tab-message.js';

/** Joins the leader, and emits what it posts from then on. Joins each new leader until one has answered. */
export const follow$ = (tab: Tab, { messages$, post }: TabChannel): Observable<Notification> =>
  defer(() => {
    const join = () => post({ type: 'join', tab: tab.name });
    tab.isWelcome = false;
    join();
    return concat(
      of(...tab.interrupted('relay-lost')).pipe(map(nextOf)),
      messages$.pipe(
        filter(isOfLeader),
        concatMap((message) => {
          if (message.type === 'ended') return message.term < tab.term ? EMPTY : of(ending(message));
          if (message.type === 'leads' && !tab.isWelcome) join();
          return tab.receive(message).pipe(map(nextOf));
        }),
      ),
    );
  });

/**
 * Emits once when the leader was silent for too long, although it was asked for a sign of life: for `idleTimeoutMs`, or for
 * `connectTimeoutMs` when it has never answered.
 */
export const silence$ = (
  tab: Tab,
  { messages$, post }: TabChannel,
  { connectTimeoutMs, idleTimeoutMs, backoff, scheduler }: RelayFeedSettings,
): Observable<unknown> =>
  messages$.pipe(
    filter(isOfLeader),
    startWith(undefined),
    switchMap(() => {
      const half = (tab.isWelcome ? idleTimeoutMs : connectTimeoutMs) / 2;
      const wait$ = (ms: number) => timer(clampMs(ms), scheduler);
      // Two timers in a row: a page that was held up itself first reads the messages that wait for it.
      return concat(
        wait$(half).pipe(
          tap(() => post({ type: 'ping' })),
          ignoreElements(),
        ),
        // The tabs do not all act at once: the others receive from the first one.
        wait$(half * (1 + backoff.random() / 8)),
      );
    }),
    take(1),
  );

const isOfLeader = (message: TabMessage): message is FromLeader => 'term' in message;
