import {
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  type Observable,
  type ObservableNotification,
} from 'rxjs';
import { of, startWith, switchMap, take, tap, timer } from 'rxjs';
import type { Received } from '../../protocol/event-line.js';
import { clampMs } from '../../protocol/rules.js';
import type { RelayFeedSettings } from '../relay-feed-options.js';
import type { TabChannel } from './tab-channel.js';
import type { FromLeader, TabMessage } from './tab-message.js';
import type { TabState } from './tab-state.js';

/** Joins the leader, and emits the events that it posts. Joins each new leader until one has answered. */
export const follow$ = (tab: TabState, { messages$, post }: TabChannel): Observable<ObservableNotification<Received>> =>
  defer(() => {
    const join = () => post({ type: 'join', tab: tab.name });
    tab.isWelcome = false;
    join();
    return concat(
      of(...tab.interrupted('relay-lost')).pipe(map(nextOf)),
      messages$.pipe(
        filter(isOfLeader),
        concatMap((message) => {
          if (message.type === 'ended') return message.term < tab.term ? EMPTY : of(endOf(message));
          if (message.type === 'leads' && !tab.isWelcome) join();
          return tab.receive(message).pipe(map(nextOf));
        }),
      ),
    );
  });

/**
 * Emits once when the leader does not answer a ping: within `idleTimeoutMs`, or within `connectTimeoutMs` if it has never answered.
 */
export const silence$ = (
  tab: TabState,
  { messages$, post }: TabChannel,
  { connectTimeoutMs, idleTimeoutMs, backoff, scheduler }: RelayFeedSettings,
): Observable<unknown> =>
  messages$.pipe(
    filter(isOfLeader),
    startWith(undefined),
    switchMap(() => {
      const half = (tab.isWelcome ? idleTimeoutMs : connectTimeoutMs) / 2;
      const wait$ = (ms: number) => timer(clampMs(ms), scheduler);
      // Two timers in a row: if this page was blocked, it reads its queued messages between them.
      return concat(
        wait$(half).pipe(
          tap(() => post({ type: 'ping' })),
          ignoreElements(),
        ),
        // Random, so that one tab becomes the leader before the others act.
        wait$(half * (1 + backoff.random() / 8)),
      );
    }),
    take(1),
  );

const isOfLeader = (message: TabMessage): message is FromLeader => 'term' in message;

const nextOf = (value: Received): ObservableNotification<Received> => ({ kind: 'N', value });

const endOf = ({ failure: error }: FromLeader & { readonly type: 'ended' }): ObservableNotification<Received> =>
  error === undefined ? { kind: 'C' } : { kind: 'E', error };
