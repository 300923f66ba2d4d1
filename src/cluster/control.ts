import { filter, map, merge, type Observable } from 'rxjs';
import * as t from 'io-ts';
import { liveSubject } from '../log/line-store.js';
import { reader, readKey, writeKey } from './election/cluster-key.js';
import {
  type CallResult,
  type EffectOf,
  type Input,
  Notice,
  Offer,
  Ownership,
  Presence,
  Report,
} from './election/election.js';
import type { ClusterEngine } from './engine.js';

export type Subjects = ReturnType<typeof subjectsOf>;

export const subjectsOf = (account: string) => {
  const of = (name: string): string => `rtf.v1.${account}.${name}`;
  return {
    key: `rtf.v1.${account}`,
    /** Frames and events of the owner. A store of the engine keeps them. */
    feed: liveSubject({ kind: 'line', name: account }),
    /** Beats of owners. */
    beats: of('beats'),
    owner: of('owner'),
    standby: of('standby'),
    /** What a replica tells all others: see {@link Notice}. */
    notices: of('notices'),
    /** An operator's request to the owner: give the ownership away, and follow. */
    handOver: of('hand-over'),
    to: (replica: string): string => of(`m.${replica}`),
  };
};

/** A presence, with what the engine refuses to the replica, for an operator. */
const StandbyPresence = t.intersection([Presence, t.readonly(t.partial({ refused: t.string }))]);
export type StandbyPresence = t.TypeOf<typeof StandbyPresence>;

export type Control = Ownership | Report | StandbyPresence | Offer | Notice;

export const writeControl = (message: Control): Buffer => Buffer.from(JSON.stringify(message));

// Ignores other bytes: other programs may use the subject, and a newer replica sends messages this one doesn't know.
const byteReader = <T>(codec: t.Decoder<unknown, T>) => {
  const read = reader(codec);
  return (data: Uint8Array): T | undefined => read(Buffer.from(data).toString('utf8'));
};

export const readQuestion = byteReader(Ownership);
export const readReport = byteReader(Report);
export const readPresence = byteReader(StandbyPresence);
export const readNotice = byteReader(Notice);
const readOffer = byteReader(Offer);

const received = <T>(
  messages$: Observable<Uint8Array>,
  read: (data: Uint8Array) => T | undefined,
  inputOf: (message: T) => Input,
): Observable<Input> =>
  messages$.pipe(
    map(read),
    filter((message) => message !== undefined),
    map(inputOf),
  );

/** Emits what replicas send to all others, and what the owner offers to this one. */
export const inputsOf = (
  engine: Pick<ClusterEngine, 'subscribe'>,
  { standby, notices, to }: Subjects,
  replica: string,
) =>
  merge(
    received(engine.subscribe(standby), readPresence, (presence) => ({ type: 'standby', presence })),
    received(engine.subscribe(notices), readNotice, (notice) => notice),
    received(engine.subscribe(to(replica)), readOffer, (offer) => ({ type: 'offer', offer })),
  );

/** Reads or writes the key of an account. Rejects if the result is unknown. */
export const accessKey = async (
  engine: ClusterEngine,
  name: string,
  effect: EffectOf<'read' | 'write'>,
): Promise<CallResult> => {
  if (effect.type === 'write') {
    const revision = await engine.compareAndSet(name, writeKey(effect.key), effect.expected);
    return revision === undefined ? { type: 'conflict' } : { type: 'written', revision };
  }
  const stored = await engine.read(name);
  const key = stored && readKey(stored.value);
  if (stored && key === undefined) return { type: 'unreadable', revision: stored.revision };
  return { type: 'entry', key, revision: stored?.revision };
};
