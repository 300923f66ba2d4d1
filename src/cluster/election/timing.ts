/** Defaults of the times that an application can set, in ms. The options and the simulation start from them. */
export const timingDefaults: Readonly<Record<'leaseMs' | 'renewMs' | 'marginMs' | 'suspectMs' | 'handOverMs', number>> =
  Object.freeze({ leaseMs: 2_000, renewMs: 500, marginMs: 200, suspectMs: 600, handOverMs: 5_000 });

/** Fixed times of a cluster in ms, and their limits. No guarantee depends on them. */
export const timing = Object.freeze({
  /** Between two beats. */
  beatMs: 250,
  /** Between two questions to a silent owner. */
  askAgainMs: 150,
  /** How long a question may take, and how long the engine may take to ask it: the election gives up sooner. */
  askMs: 300,
  engineAskMs: 1_000,
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
  /** If an owner's last message is older, none is under way: more than a beat, and its delay. */
  silentMs: 400,
  /** A silence is reported this long after the lease: longer than a takeover takes. */
  silenceMarginMs: 1_000,
  /** A new owner corrects a larger difference between the clocks. */
  maxSkewMs: 500,
  /** How long the previous owner's writer may take to release a folder, and how often this one tries. */
  folderInUseMs: 2_000,
  folderRetryMs: 50,
  /** How long a fault of the engine lasts before it's reported: one late or lost answer shouldn't fill a log. */
  faultGraceMs: 1_000,
  /** The longest time between two reports of a fault. */
  maxFaultRepeatMs: 60_000,
  /**
   * A fault of an operation that hasn't recurred for this long is over: an owner publishes every `beatMs`, a standby
   * every `presenceMs`, and a replica whose claims fail waits up to `maxClaimWaitMs` before the next one.
   */
  faultOverMs: {
    connect: Infinity,
    read: 45_000,
    write: 45_000,
    publish: 5_000,
    subscribe: 10_000,
    request: 5_000,
    store: 10_000,
  },
  /** How long `cluster status` collects the messages of standbys: each sends one in this time. */
  collectMs: 1_500,
  /** How long `cluster hand-over` waits for the owner, and a command for any answer of the engine. */
  handOverAskMs: 2_000,
  answerMs: 5_000,
});
