import type { ClusterKey } from '../../../src/cluster/election/cluster-key.js';
import type { Offer, Presence, Question, Report } from '../../../src/cluster/election/election.js';
import type { CallResult } from '../../../src/cluster/election/election.js';
import type { FeedMessage } from '../../../src/cluster/messages/feed-message.js';
import type { Chance } from './chance.js';
import { delayUpTo } from './network.js';
import type { Schedule } from './schedule.js';
import type { SimulatedReplica } from './simulated-replica.js';
import type { Store } from './store.js';

interface Hooks {
  readonly disconnected: () => void;
  readonly asked: (question: Question, from: string) => Report | undefined;
  readonly isServing: () => boolean;
}

interface Member extends Hooks {
  readonly replica: SimulatedReplica;
  /** Whether the engine has a connection to the replica, also through a black hole. */
  isConnected: boolean;
}

interface Payloads {
  readonly feed: FeedMessage;
  readonly standby: Presence;
  readonly voided: number;
  readonly evicted: ClusterKey['evictions'];
  readonly stop: undefined;
}

/** The engine: the store, messages and requests, with their delays and losses. */
export interface SimulatedEngine {
  readonly isUp: () => boolean;
  readonly setUp: (isUp: boolean) => void;
  readonly join: (replica: SimulatedReplica, hooks: Hooks) => void;
  readonly leave: (replica: SimulatedReplica) => void;
  /** Disconnects a replica that the engine refuses, and connects it when it does not. */
  readonly updateLink: (replica: SimulatedReplica) => void;
  readonly access: (replica: SimulatedReplica, id: number, access: (store: Store) => CallResult) => void;
  readonly ask: (replica: SimulatedReplica, id: number, question: Question) => void;
  readonly publish: <Subject extends keyof Payloads>(
    replica: SimulatedReplica,
    subject: Subject,
    payload: Payloads[Subject],
  ) => void;
  readonly send: (replica: SimulatedReplica, to: string, offer: Offer) => void;
}

/** Creates the engine. */
export const createEngine = (schedule: Schedule, chance: Chance, store: Store): SimulatedEngine => {
  const members = new Map<SimulatedReplica, Member>();
  /** When the last message of a pair of replicas arrives: messages stay in order. */
  const arrivals = new Map<string, number>();
  let isUp = true;

  const memberOf = (replica: SimulatedReplica): Member | undefined => members.get(replica);
  const reaches = ({ conditions }: SimulatedReplica): boolean =>
    isUp && conditions.link === 'good' && !(conditions.loss > 0 && chance.isTrue(conditions.loss));

  const deliver = (from: SimulatedReplica, to: SimulatedReplica, action: () => void): void => {
    const pair = `${from.id}>${to.id}`;
    const at = Math.max(schedule.now() + chance.between(0.2, 3), (arrivals.get(pair) ?? 0) + 0.001);
    arrivals.set(pair, at);
    schedule.after(at - schedule.now(), () => {
      if (memberOf(to)?.isConnected && reaches(to)) to.run(action);
    });
  };

  const broadcast = (from: SimulatedReplica, action: (to: SimulatedReplica) => void): void => {
    if (!memberOf(from)?.isConnected || !reaches(from)) return;
    for (const to of members.keys()) deliver(from, to, () => action(to));
  };

  const connect = (member: Member): void => {
    const { replica } = member;
    const canConnect = (): boolean => isUp && replica.conditions.link !== 'refused' && members.has(replica);
    if (!canConnect()) {
      if (!member.isConnected) return;
      member.isConnected = false;
      replica.run(member.disconnected);
      return;
    }
    if (member.isConnected) return;
    // A client of an engine connects again after a wait.
    schedule.after(delayUpTo(chance, 2_000), () => {
      if (!canConnect() || member.isConnected) return;
      member.isConnected = true;
      replica.run(() => replica.input({ type: 'engine', isConnected: true }));
    });
  };

  return {
    isUp: () => isUp,
    setUp: (up) => {
      isUp = up;
      for (const member of members.values()) connect(member);
    },
    join: (replica, hooks) => {
      members.set(replica, { replica, ...hooks, isConnected: isUp });
    },
    leave: (replica) => {
      members.delete(replica);
    },
    updateLink: (replica) => {
      const member = memberOf(replica);
      if (member) connect(member);
    },
    access: (replica, id, access) => {
      const { conditions } = replica;
      const end = (result: CallResult): void => replica.run(() => replica.input({ type: 'call', id, result }));
      if (!memberOf(replica)?.isConnected) return schedule.after(1, () => end({ type: 'unknown' }));
      if (!reaches(replica)) return;
      // A request that is under way arrives also if the replica does not wait any more.
      schedule.after(delayUpTo(chance, conditions.storeMs), () => {
        if (!isUp) return;
        const result = access(store);
        if (reaches(replica)) schedule.after(chance.between(0.2, 3), () => end(result));
      });
    },
    ask: (replica, id, question) => {
      if (!memberOf(replica)?.isConnected || !reaches(replica)) return;
      const answered = (result: Parameters<typeof replica.input>[0] & { readonly type: 'ask' }): void =>
        schedule.after(chance.between(0.2, 3), () => {
          if (reaches(replica)) replica.run(() => replica.input(result));
        });
      const owners = [...members.values()].filter((each) => each.isConnected && each.isServing());
      const owner = owners[0];
      if (owner === undefined) return answered({ type: 'ask', id, result: { type: 'no-responders' } });
      deliver(replica, owner.replica, () => {
        const report = owner.asked(question, replica.id);
        if (report && reaches(owner.replica)) answered({ type: 'ask', id, result: { type: 'answer', report } });
      });
    },
    publish: (replica, subject, payload) =>
      broadcast(replica, (to) => {
        switch (subject) {
          case 'feed':
            return to.receive(payload as FeedMessage);
          case 'standby':
            return to.input({ type: 'standby', presence: payload as Presence });
          case 'voided':
            return to.input({ type: 'voided', gen: payload as number });
          case 'evicted':
            return to.input({ type: 'evicted', evictions: payload as ClusterKey['evictions'] });
          case 'stop':
            return to.input({ type: 'stop-notice' });
        }
      }),
    send: (replica, id, offer) => {
      const to = [...members.keys()].find((each) => each.id === id);
      if (to && memberOf(replica)?.isConnected && reaches(replica))
        deliver(replica, to, () => to.input({ type: 'offer', offer }));
    },
  };
};
