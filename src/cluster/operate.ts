import { type Observable, scan, startWith, timer } from 'rxjs';
import { lastValueFrom, takeUntil } from 'rxjs';
import { type ClusterKey, readKey, resumedKey, writeKey } from './election/cluster-key.js';
import type { ClusterEngine } from './engine/cluster-engine.js';
import type { Presence } from './election/election.js';
import { readPresence } from './messages/control.js';
import { subjectsOf } from './subjects.js';

/** The state of a cluster for an operator. */
export interface ClusterState {
  /** The key of the account; `undefined` if no replica has ever owned it. */
  readonly key: ClusterKey | undefined;
  /** The replicas that follow and could own the connection, the oldest first. */
  readonly standbys: readonly Presence[];
}

/**
 * Reads the state of a cluster. Standbys report themselves once a second, so this takes a little longer.
 *
 * @param account - the name of the account
 * @param waitMs - how long to wait for standbys
 */
export const readClusterState = async (
  engine: ClusterEngine,
  account: string,
  waitMs = 1_500,
): Promise<ClusterState> => {
  const subjects = subjectsOf(account);
  const standbys = lastValueFrom(standbys$(engine, subjects.standby).pipe(takeUntil(timer(waitMs))));
  const stored = await engine.read(subjects.key);
  return { key: stored && readKey(stored.value), standbys: await standbys };
};

const standbys$ = (engine: ClusterEngine, subject: string): Observable<readonly Presence[]> =>
  engine.subscribe(subject).pipe(
    scan((known, data) => {
      const presence = readPresence(data);
      return presence === undefined ? known : known.set(presence.replica, presence);
    }, new Map<string, Presence>()),
    startWith(new Map<string, Presence>()),
    scan((_, known) => [...known.values()].toSorted((a, b) => a.since - b.since), [] as readonly Presence[]),
  );

/**
 * Asks the owner to give the ownership away. It follows afterwards, and can own the connection again.
 *
 * @returns whether there was an owner to ask
 */
export const requestHandOver = async (engine: ClusterEngine, account: string): Promise<boolean> => {
  const reply = await engine.request(subjectsOf(account).handOver, new Uint8Array(), 2_000);
  return reply.type === 'reply';
};

/** Allows the replicas of a cluster to connect again. Returns whether the cluster had stopped. */
export const resumeCluster = async (engine: ClusterEngine, account: string): Promise<boolean> => {
  const { key: name } = subjectsOf(account);
  for (;;) {
    const stored = await engine.read(name);
    if (stored === undefined) return false;
    const key = readKey(stored.value);
    if (key.phase !== 'stopped') return false;
    if ((await engine.compareAndSet(name, writeKey(resumedKey(key)), stored.revision)) !== undefined) return true;
  }
};
