import * as t from 'io-ts';
import { isRight, tryCall } from '../../protocol/type-guards.js';

/** Only the first two phases have an owner. */
export const KeyPhase = t.keyof({ opening: null, open: null, free: null, stopped: null }, 'KeyPhase');
export type KeyPhase = t.TypeOf<typeof KeyPhase>;

const count = t.refinement(t.number, (value) => Number.isSafeInteger(value) && value >= 0, 'count');

const Credit = t.readonly(t.type({ gen: count, leftMs: t.number }), 'Credit');
export type Credit = t.TypeOf<typeof Credit>;

export const Eviction = t.readonly(t.type({ leftMs: t.number }));
export type Eviction = t.TypeOf<typeof Eviction>;

const ChangeCause = t.keyof({ first: null, 'hand-over': null, released: null, silence: null, resumed: null });
/**
 * Why the owner changed. `first`: there was no key. `hand-over`: the previous owner offered the ownership to this one.
 * `released`: it gave the ownership away, with no successor. `silence`: it didn't answer. `resumed`: an operator
 * allowed the replicas to connect again.
 */
export type ChangeCause = t.TypeOf<typeof ChangeCause>;

/** A change of the owner: the new owner, its generation, and when it claimed the key, in epoch ms by its clock. */
const OwnerChange = t.readonly(
  t.type({ gen: count, owner: t.string, since: t.number, cause: ChangeCause }),
  'OwnerChange',
);

/** The key of an account: the only state that all replicas share. */
export const ClusterKey = t.readonly(
  t.intersection([
    t.type({
      v: t.literal(1),
      /** What all replicas of the account stream, for people: the feed, and the name of the service. */
      source: t.string,
      gen: count,
      /** The id of the replica that owns the connection; empty if there's no owner. */
      owner: t.string,
      phase: KeyPhase,
      /** When the owner claimed the key, in epoch ms by its clock. */
      since: t.number,
      credits: t.readonlyArray(Credit),
      /** Evictions of owners in the last minute. */
      evictions: t.readonlyArray(Eviction),
      /** The last changes of the owner, the oldest first. The election doesn't read them. */
      changes: t.readonlyArray(OwnerChange),
    }),
    t.partial({ stop: t.readonly(t.type({ by: t.string, at: t.number })) }),
  ]),
  'ClusterKey',
);
export type ClusterKey = t.TypeOf<typeof ClusterKey>;

export const writeKey = (key: ClusterKey): string => JSON.stringify(key);

/** Creates a function that reads JSON, and returns `undefined` for a text of another form. */
export const reader =
  <T>(codec: t.Decoder<unknown, T>) =>
  (text: string): T | undefined => {
    const decoded = codec.decode(tryCall(() => JSON.parse(text) as unknown));
    return isRight(decoded) ? decoded.right : undefined;
  };

/** The caller reports a text that isn't a key of this version: a replica as a fault, an operator as a damaged key. */
export const readKey = reader(ClusterKey);

/** Returns whether the ids of two replicas reveal that their feeds or services differ. */
export const areOfDifferentSources = (one: string, other: string): boolean => {
  const [mine, theirs] = [sourceIn(one), sourceIn(other)];
  return mine !== undefined && theirs !== undefined && mine !== theirs;
};

const sourceIn = (id: string): string | undefined => /-[\da-f]{12}([\da-f]{8})$/.exec(id)?.[1];

/** Returns credits or evictions with the time they end on this clock, in place of the time left. */
export const lasting = <T extends { readonly leftMs: number }>(entries: readonly T[], now: number) =>
  entries.map(({ leftMs, ...rest }) => ({ ...rest, until: now + leftMs }));

/** Returns those that still count, with the time left. */
export const remaining = <T extends { readonly until: number }>(entries: readonly T[], now: number) =>
  entries.filter(({ until }) => until > now).map(({ until, ...rest }) => ({ ...rest, leftMs: until - now }));

const readGeneration = reader(t.type({ gen: count }));

/** Returns a claimable key to replace a text that isn't one. Keeps the generation in the text. */
export const repairedKey = (text: string): ClusterKey => {
  const { gen } = readGeneration(text) ?? { gen: 0 };
  return { v: 1, source: 'not known', gen, since: Date.now(), changes: [], ...unowned };
};

/**
 * Returns a claimable key after an operator allowed it. Keeps `stop` as the reason of the next claim. The higher
 * generation marks an old `stopped` as out of date.
 */
export const resumedKey = (key: ClusterKey): ClusterKey => ({ ...key, gen: key.gen + 1, ...unowned });

const unowned = { owner: '', phase: 'free', credits: [], evictions: [] } as const;
