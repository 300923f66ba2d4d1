import * as t from 'io-ts';
import { isRight } from '../../protocol/either.js';
import { Feed } from '../../protocol/feed.js';
import { invalidOption } from '../../protocol/rules.js';

/** The phases of an owner: it opens a connection, or has an open one. A key without an owner is `free` or `stopped`. */
export const OwnerPhase = t.keyof({ opening: null, open: null }, 'OwnerPhase');
export type OwnerPhase = t.TypeOf<typeof OwnerPhase>;

/** All phases of the key. */
export const KeyPhase = t.keyof({ opening: null, open: null, free: null, stopped: null }, 'KeyPhase');
export type KeyPhase = t.TypeOf<typeof KeyPhase>;

const count = t.refinement(t.number, (value) => Number.isSafeInteger(value) && value >= 0, 'count');

const Credit = t.readonly(t.type({ gen: count, leftMs: t.number }), 'Credit');
/**
 * Allows the owner to open once more after a `4001`: a handshake that had no answer can still arrive and replace the connection. Its sender is
 * a replica that was displaced while it was opening, or the owner itself.
 */
export type Credit = t.TypeOf<typeof Credit>;

const ChangeCause = t.keyof({ first: null, 'hand-over': null, released: null, silence: null, resumed: null });
/**
 * Why the owner changed. `first`: there was no key. `hand-over`: the previous owner offered the ownership to this one. `released`: it gave the
 * ownership away without a successor. `silence`: it did not answer. `resumed`: an operator allowed the replicas to connect again.
 */
export type ChangeCause = t.TypeOf<typeof ChangeCause>;

const OwnerChange = t.readonly(
  t.type({ gen: count, owner: t.string, since: t.number, cause: ChangeCause }),
  'OwnerChange',
);
/** A change of the owner: the new owner, its generation, and when it claimed the key, in epoch ms by its clock. */
export type OwnerChange = t.TypeOf<typeof OwnerChange>;

const Stop = t.readonly(t.type({ by: t.string, at: t.number }));

/** The codec of a key. */
export const KeyCodec = t.readonly(
  t.intersection([
    t.type({
      v: t.literal(1),
      feed: Feed,
      /** Identifies the generations of a store: after a loss of all data they start at 1 again. */
      epoch: count,
      gen: count,
      /** The id of the replica that owns the connection; empty without an owner. */
      owner: t.string,
      phase: KeyPhase,
      /** When the owner claimed the key, in epoch ms by its clock. */
      since: t.number,
      credits: t.readonlyArray(Credit),
      /** The evictions of owners in the last minute: how long each of them still counts. */
      evictions: t.readonlyArray(t.readonly(t.type({ leftMs: t.number }))),
      /** The last changes of the owner, the oldest first. The election does not read them. */
      changes: t.readonlyArray(OwnerChange),
    }),
    t.partial({ stop: Stop }),
  ]),
  'ClusterKey',
);
/** The key of an account: the only state that all replicas share. */
export type ClusterKey = t.TypeOf<typeof KeyCodec>;

/** Returns the text of a key. */
export const writeKey = (key: ClusterKey): string => JSON.stringify(key);

/**
 * Reads the text of a key.
 *
 * @throws TradeFeedError with code `invalid-options` for a text that is not a key of this version
 */
export const readKey = (text: string): ClusterKey => {
  const decoded = KeyCodec.decode(parsed(text));
  if (isRight(decoded)) return decoded.right;
  throw invalidOption('account', 'the name of an account whose key this version of rx-trade-feed can read');
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/** The life of a credit in ms: the life of a ticket, and a margin. A handshake with an older ticket is refused. */
export const creditMs = 65_000;
const maxCredits = 2;

/** How long an eviction counts, in ms. */
export const evictionMs = 60_000;
/** How many evictions in that time a credit can explain. */
export const maxEvictions = 3;

/** Returns what is left of credits or evictions after `elapsedMs`. */
export const aged = <T extends { readonly leftMs: number }>(entries: readonly T[], elapsedMs: number): readonly T[] =>
  entries.map((entry) => ({ ...entry, leftMs: entry.leftMs - elapsedMs })).filter(({ leftMs }) => leftMs > 0);

/** Returns the credits of a claim that displaces an owner. An owner that was opening may have sent a handshake. */
export const creditsAfter = (
  credits: readonly Credit[],
  displaced: { readonly gen: number; readonly phase: KeyPhase | undefined },
): readonly Credit[] => (displaced.phase === 'opening' ? withCredit(credits, displaced.gen) : credits);

/** Returns the credits with one more, for a handshake of this generation that can still arrive. Keeps the newest credits. */
export const withCredit = (credits: readonly Credit[], gen: number): readonly Credit[] =>
  [...credits, { gen, leftMs: creditMs }].slice(-maxCredits);

/** How many changes of the owner the key contains. */
const maxChanges = 6;

/** Returns the changes with one more. Keeps the newest changes. */
export const withChange = (changes: readonly OwnerChange[], change: OwnerChange): readonly OwnerChange[] =>
  [...changes, change].slice(-maxChanges);

/**
 * Returns a key that a replica can claim, after an operator allowed it. It keeps `stop` as the reason of the next claim. The higher generation
 * shows that an old `stopped` is out of date.
 */
export const resumedKey = (key: ClusterKey): ClusterKey => ({
  ...key,
  gen: key.gen + 1,
  owner: '',
  phase: 'free',
  credits: [],
  evictions: [],
});
