/** The names under which the replicas of an account exchange messages. */
export interface Subjects {
  readonly key: string;
  /** The frames and events of the owner, and its beats. */
  readonly feed: string;
  /** The beats of owners once more: an owner does not receive the messages with its own frames. */
  readonly beats: string;
  readonly owner: string;
  readonly standby: string;
  readonly voided: string;
  readonly evicted: string;
  readonly stop: string;
  /** Requests of an operator to the owner: give the ownership away, and follow. */
  readonly handOver: string;
  /** The messages to one replica. */
  readonly to: (replica: string) => string;
}

/** Returns the names of an account. */
export const subjectsOf = (account: string): Subjects => {
  const of = (name: string): string => `rtf.v1.${account}.${name}`;
  return {
    key: `rtf.v1.${account}`,
    feed: of('feed'),
    beats: of('beats'),
    owner: of('owner'),
    standby: of('standby'),
    voided: of('voided'),
    evicted: of('evicted'),
    stop: of('stop'),
    handOver: of('hand-over'),
    to: (replica) => of(`m.${replica}`),
  };
};
