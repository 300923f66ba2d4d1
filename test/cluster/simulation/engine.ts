import type { CallResult, Input, Offer, Ownership, Report } from '../../../src/cluster/election/election.js';
import type { Chance } from '../../simulation/chance.js';
import { createLines, type Time } from '../../simulation/world.js';
import type { Store } from './store.js';

/** The conditions between one replica, the engine and the service. Faults change them for some time. */
export interface Conditions {
  /** `refused`: the replica knows that the engine is away. `black-hole`: it doesn't, and nothing arrives. */
  link: 'good' | 'refused' | 'black-hole';
  /** Probability that a message or an answer of the engine is lost. */
  loss: number;
  /** Longest delay of a call to the store, in ms. */
  storeMs: number;
  /** Longest time that a handshake needs to reach the service, in ms. */
  handshakeMs: number;
  /** Longest time of a ticket request, in ms. */
  ticketMs: number;
}

/** Returns a delay: mostly a short one, even in bad conditions. */
export const delayUpTo = (chance: Chance, mostMs: number): number =>
  chance.isTrue(0.5) ? chance.between(0.2, Math.min(3, mostMs)) : chance.between(0.2, mostMs);

/** What the engine needs of a replica. */
interface Peer {
  readonly id: string;
  readonly conditions: Conditions;
  readonly isServing: boolean;
  run(action: () => void): void;
  input(each: Input): void;
  asked(question: Ownership, from: string): Report | undefined;
  disconnected(): void;
}

export type SimulatedEngine<R extends Peer> = ReturnType<typeof createEngine<R>>;

/** Creates the engine: the store, messages and requests, with their delays and losses. */
export const createEngine = <R extends Peer>(time: Time, chance: Chance, store: Store) => {
  /** The members, and whether the engine has a connection to each, also through a black hole. */
  const connected = new Map<R, boolean>();
  const send = createLines(time);
  let isUp = true;

  const reaches = ({ conditions }: R): boolean =>
    isUp && conditions.link === 'good' && !(conditions.loss > 0 && chance.isTrue(conditions.loss));

  const deliver = (from: R, to: R, action: () => void): void => {
    send(`${from.id}>${to.id}`, chance.between(0.2, 3), () => {
      if (connected.get(to) && reaches(to)) to.run(action);
    });
  };

  /** One server passes messages on in the order in which they arrive. */
  const broadcast = (from: R, receive: (to: R) => void): void => {
    send(`${from.id}>`, chance.between(0.1, 1.5), () => {
      for (const to of connected.keys())
        send(`>${to.id}`, chance.between(0.1, 1.5), () => {
          if (connected.get(to) && reaches(to)) to.run(() => receive(to));
        });
    });
  };

  const connect = (replica: R): void => {
    const canConnect = (): boolean => isUp && replica.conditions.link !== 'refused' && connected.has(replica);
    if (!canConnect()) {
      if (!connected.get(replica)) return;
      connected.set(replica, false);
      replica.run(() => replica.disconnected());
      return;
    }
    if (connected.get(replica)) return;
    // An engine's client waits before it reconnects.
    time.after(delayUpTo(chance, 2_000), () => {
      if (!canConnect() || connected.get(replica)) return;
      connected.set(replica, true);
      replica.run(() => replica.input({ type: 'engine', isConnected: true }));
    });
  };

  return {
    isUp: (): boolean => isUp,
    setUp: (up: boolean): void => {
      isUp = up;
      for (const replica of connected.keys()) connect(replica);
    },
    join: (replica: R): void => void connected.set(replica, isUp),
    leave: (replica: R): void => void connected.delete(replica),
    /** Disconnects a replica that the engine refuses, and connects it when it does not. */
    updateLink: (replica: R): void => {
      if (connected.has(replica)) connect(replica);
    },
    access: (replica: R, id: number, access: (store: Store) => CallResult): void => {
      const { conditions } = replica;
      const end = (result: CallResult): void => replica.run(() => replica.input({ type: 'call', id, result }));
      if (!connected.get(replica)) return void time.after(1, () => end({ type: 'unknown' }));
      if (!reaches(replica)) return;
      // A request under way arrives even if the replica has stopped waiting.
      time.after(delayUpTo(chance, conditions.storeMs), () => {
        if (!isUp) return;
        const result = access(store);
        if (reaches(replica)) time.after(chance.between(0.2, 3), () => end(result));
      });
    },
    ask: (replica: R, id: number, question: Ownership): void => {
      if (!connected.get(replica) || !reaches(replica)) return;
      const answered = (result: Input): void => {
        time.after(chance.between(0.2, 3), () => {
          if (reaches(replica)) replica.run(() => replica.input(result));
        });
      };
      const [owner] = [...connected].flatMap(([each, isIn]) => (isIn && each.isServing ? [each] : []));
      if (owner === undefined) return answered({ type: 'ask', id, result: 'no-responders' });
      deliver(replica, owner, () => {
        const report = owner.asked(question, replica.id);
        if (report && reaches(owner)) answered({ type: 'ask', id, result: report });
      });
    },
    publish: (from: R, receive: (to: R) => void): void => {
      if (!connected.get(from) || !reaches(from)) return;
      broadcast(from, receive);
    },
    send: (replica: R, id: string, offer: Offer): void => {
      const to = [...connected.keys()].find((each) => each.id === id);
      if (to && connected.get(replica) && reaches(replica))
        deliver(replica, to, () => to.input({ type: 'offer', offer }));
    },
  };
};
