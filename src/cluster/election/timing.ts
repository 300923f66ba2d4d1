/** The defaults of the times that an application can set, in ms. The options and the simulation begin with them. */
export const timingDefaults: Readonly<Record<'leaseMs' | 'renewMs' | 'marginMs' | 'suspectMs' | 'handOverMs', number>> =
  Object.freeze({ leaseMs: 2_000, renewMs: 500, marginMs: 200, suspectMs: 600, handOverMs: 5_000 });

/** The fixed times of the election and of the followers in ms, and their limits. No guarantee depends on one. */
export const timing = Object.freeze({
  /** Between two beats. */
  beatMs: 250,
  /** Between two questions to an owner that is silent. */
  askAgainMs: 150,
  /** How long a question may take. */
  askMs: 300,
  /** How long an access to the store may take. */
  callMs: 500,
  /** The wait after an access to the store without a result. */
  retryMs: 100,
  /** Claims of different replicas are spread over this time. */
  spreadMs: 50,
  /** Between two messages of a standby. */
  presenceMs: 1_000,
  /** How long a standby counts after its last message. */
  standbyMs: 3_000,
  /** How long a standby counts as possible, although it is silent. */
  goneMs: 30_000,
  /** How long a standby has to accept the ownership. */
  offerMs: 500,
  /** How long the old connection is kept after the new one is open. */
  drainMs: 100,
  /** How many claims a replica makes in the last `windowMs` without a wait, and the longest wait of a later one. */
  freeClaims: 3,
  windowMs: 60_000,
  maxClaimWaitMs: 30_000,
  /** The life of a credit: that of a ticket, and a margin. A handshake with an older ticket is refused. */
  creditMs: 65_000,
  /** How many credits the key has at a time. */
  maxCredits: 2,
  /** How long an eviction counts, and how many of them credits can explain. */
  evictionMs: 60_000,
  maxEvictions: 3,
  /** How many changes of the owner the key contains. */
  maxChanges: 6,
  /** How long the first messages of a new generation wait for the `end` of the previous one. */
  holdMs: 100,
  /** An owner whose last message is older has no message under way: more than a beat, and its delay. */
  silentMs: 400,
});
