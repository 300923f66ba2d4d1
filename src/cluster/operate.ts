import { firstValueFrom, from, reduce, takeUntil, throwError, timeout, timer } from 'rxjs';
import type { LineExtent } from '../log/line-store.js';
import type { EngineOperation } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { readPresence, type StandbyPresence, subjectsOf } from './control.js';
import { type ClusterKey, readKey, repairedKey, resumedKey, writeKey } from './election/cluster-key.js';
import { timing } from './election/timing.js';
import { engineRefused } from './engine-faults.js';
import type { ClusterEngine } from './engine.js';
import { headOf } from './messages.js';

export interface ClusterState {
  /** The key of the account; `undefined` if no replica has ever owned it, or if it's unreadable. */
  readonly key: ClusterKey | undefined;
  /** Whether the key is unreadable: it's damaged, or of a newer version. */
  readonly isUnreadable?: true;
  /** The replicas that follow and could own the connection, the oldest first. */
  readonly standbys: readonly StandbyPresence[];
  readonly line: LineState;
}

/** What the engine's store holds of the last minute. `none`: the engine has no store. */
export type LineState = LineExtent | 'empty' | 'none' | { readonly refused: string };

/** Reads the state of a cluster. Waits a little over a second, because standbys announce themselves once a second. */
export const readClusterState = async (
  engine: ClusterEngine,
  account: string,
  waitMs: number = timing.collectMs,
): Promise<ClusterState> => {
  const subjects = subjectsOf(account);
  const presences$ = engine.subscribe(subjects.standby).pipe(
    takeUntil(timer(waitMs)),
    reduce((known, data) => {
      const presence = readPresence(data);
      return presence === undefined ? known : known.set(presence.replica, presence);
    }, new Map<string, StandbyPresence>()),
  );
  const [known, stored, line] = await Promise.all([
    asked('subscribe', firstValueFrom(presences$)),
    asked('read', engine.read(subjects.key)),
    readLineState(engine, account),
  ]);
  const key = stored && readKey(stored.value);
  const standbys = [...known.values()].toSorted((one, other) => one.since - other.since);
  return { key, ...(stored && key === undefined && { isUnreadable: true }), standbys, line };
};

const readLineState = async (engine: ClusterEngine, account: string): Promise<LineState> => {
  const store = engine.line?.({ kind: 'line', name: account, headOf });
  if (store === undefined) return 'none';
  try {
    return (await asked('store', store.extent())) ?? 'empty';
  } catch (error) {
    // The rest of the state is known all the same.
    const { detail = '', advice } = error as TradeFeedError;
    return { refused: `${detail}. ${advice}` };
  }
};

/** Asks the owner to give the ownership away, and to follow. Returns whether there was an owner. */
export const requestHandOver = async (engine: ClusterEngine, account: string): Promise<boolean> => {
  const { handOver } = subjectsOf(account);
  const reply = await asked('request', engine.request(handOver, new Uint8Array(), timing.handOverAskMs));
  return reply.type === 'reply';
};

const asked = async <T>(operation: EngineOperation, answer: Promise<T>): Promise<T> => {
  const { answerMs } = timing;
  const late = new Error(`no answer in ${answerMs / 1_000} s`);
  const answer$ = from(answer).pipe(timeout({ first: answerMs, with: () => throwError(() => late) }));
  return firstValueFrom(answer$).catch((error: unknown) => {
    throw engineRefused(operation, error);
  });
};

/** Allows replicas to connect again after a stop, or replaces an unreadable key. Returns whether it was needed. */
export const resumeCluster = async (engine: ClusterEngine, account: string): Promise<boolean> => {
  const { key: name } = subjectsOf(account);
  for (;;) {
    const stored = await asked('read', engine.read(name));
    if (stored === undefined) return false;
    const key = readKey(stored.value);
    if (key !== undefined && key.phase !== 'stopped') return false;
    const next = key === undefined ? repairedKey(stored.value) : resumedKey(key);
    const revision = await asked('write', engine.compareAndSet(name, writeKey(next), stored.revision));
    if (revision !== undefined) return true;
  }
};
