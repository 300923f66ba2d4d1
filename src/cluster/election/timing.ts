/** Defaults of the times that an application can set, in ms. The options and the simulation start from them. */
export const timingDefaults: Readonly<Record<'leaseMs' | 'renewMs' | 'marginMs' | 'suspectMs' | 'handOverMs', number>> =
  Object.freeze({ leaseMs: 2_000, renewMs: 500, marginMs: 200, suspectMs: 600, handOverMs: 5_000 });

/** Fixed times of the election and of the followers in ms, and their limits. No guarantee depends on them. */
export const timing = Object.freeze({
  /** Between two beats. */
  beatMs: 250,
  /** Between two questions to a silent owner. */
  askAgainMs: 150,
  /** How long a question may take. */
  askMs: 300,
  /** How long a call to the store may take. */
  callMs: 500,
  /** The delay after a call to the store whose result is unknown. */
  retryMs: 100,
  /** Spreads the claims of different replicas over this time. */
  spreadMs: 50,
  /** Between two messages of a standby. */
  presenceMs: 1_000,
  /** How long a standby counts after its last message. */
  standbyMs: 3_000,
  /** How long a silent standby still counts as a possible owner. */
  goneMs: 30_000,
  /** How long a standby has to accept the ownership. */
  offerMs: 500,
  /** How long the old connection is kept once the new one is open. */
  drainMs: 100,
  /** How many claims in the last `windowMs` aren't delayed, and the longest delay of a later one. */
  freeClaims: 3,
  windowMs: 60_000,
  maxClaimWaitMs: 30_000,
  /** The life of a credit: that of a ticket, plus a margin. A handshake with an older ticket is refused. */
  creditMs: 65_000,
  /** How many credits the key holds. */
  maxCredits: 2,
  /** How long an eviction counts, and how many of them credits can explain. */
  evictionMs: 60_000,
  maxEvictions: 3,
  /** How many changes of the owner the key holds. */
  maxChanges: 6,
  /** How long the first messages of a new generation wait for the `end` of the previous one. */
  holdMs: 100,
  /** If an owner's last message is older, none is under way: more than a beat, and its delay. */
  silentMs: 400,
});
