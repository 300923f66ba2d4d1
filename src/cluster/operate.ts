import { firstValueFrom, from, reduce, takeUntil, throwError, timeout, timer } from 'rxjs';
import type { EngineOperation } from '../protocol/event.js';
import { readPresence, type StandbyPresence, subjectsOf } from './control.js';
import { type ClusterKey, readKey, repairedKey, resumedKey, writeKey } from './election/cluster-key.js';
import { timing } from './election/timing.js';
import { engineRefused } from './engine-faults.js';
import type { ClusterEngine } from './engine.js';

export interface ClusterState {
  /** The key of the account; `undefined` if no replica has ever owned it, or if it's unreadable. */
  readonly key: ClusterKey | undefined;
  /** Whether the key is unreadable: it's damaged, or of a newer version. */
  readonly isUnreadable?: true;
  /** The replicas that follow and could own the connection, the oldest first. */
  readonly standbys: readonly StandbyPresence[];
}

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
  const [known, stored] = await Promise.all([
    asked('subscribe', firstValueFrom(presences$)),
    asked('read', engine.read(subjects.key)),
  ]);
  const key = stored && readKey(stored.value);
  const standbys = [...known.values()].toSorted((one, other) => one.since - other.since);
  return { key, ...(stored && key === undefined && { isUnreadable: true }), standbys };
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
