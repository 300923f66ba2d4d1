import type { CallResult, Input, Offer, Ownership, Report } from '../../../src/cluster/election/election.js';
import type { Chance } from '../../simulation/chance.js';
import { lineLimits } from '../../../src/log/line-store.js';
import { createLines, type Time } from '../../simulation/world.js';
import type { LineServer } from './line.js';
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
  later(delayMs: number, action: () => void): () => void;
  input(each: Input): void;
  asked(question: Ownership, from: string): Report | undefined;
  connectionChanged(isConnected: boolean): void;
  /** An answer of the store arrives. `isGood`: it has done what it was asked for. */
  answeredByStore(isGood: boolean): void;
}

export type SimulatedEngine<R extends Peer> = ReturnType<typeof createEngine<R>>;

/** Creates the engine: the store, messages and requests, with their delays and losses. */
export const createEngine = <R extends Peer>(time: Time, chance: Chance, store: Store, line?: LineServer) => {
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
  const broadcast = (from: R, receive: (to: R) => void, arrive: () => boolean): void => {
    send(`${from.id}>`, chance.between(0.1, 1.5), () => {
      if (!arrive()) return;
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
      replica.run(() => replica.connectionChanged(false));
      return;
    }
    if (connected.get(replica)) return;
    // An engine's client waits before it reconnects.
    time.after(delayUpTo(chance, 2_000), () => {
      if (!canConnect() || connected.get(replica)) return;
      connected.set(replica, true);
      replica.run(() => replica.connectionChanged(true));
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
    /** @param arrive - called when the server has the message. Returns whether the others get it */
    publish: (from: R, receive: (to: R) => void, arrive = (): boolean => isUp): void => {
      if (!connected.get(from) || !reaches(from)) return;
      broadcast(from, receive, arrive);
    },
    isConnected: (replica: R): boolean => connected.get(replica) === true,
    line,
    /** Sends an answer of the store to a replica. */
    answer: (replica: R, receive: () => void): void => {
      if (!isUp || !reaches(replica)) return;
      send(`line>${replica.id}`, delayUpTo(chance, line?.delayMs ?? 0), () => {
        if (connected.get(replica)) replica.run(receive);
      });
    },
    /** Calls the store of the line. Rejects if there's no answer. */
    call: <T>(replica: R, access: () => T): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        const fail = (text: string): void => {
          replica.answeredByStore(false);
          reject(new Error(text));
        };
        if (!connected.get(replica)) return void replica.later(0, () => fail('The engine is disconnected'));
        const cancel = replica.later(lineLimits.requestMs, () => fail('No answer'));
        if (!reaches(replica)) return;
        time.after(delayUpTo(chance, line?.delayMs ?? 0), () => {
          if (!isUp || line?.state === 'silent') return;
          const result = line?.state === 'away' ? undefined : { value: access() };
          if (!reaches(replica)) return;
          time.after(chance.between(0.2, 3), () =>
            replica.run(() => {
              cancel();
              if (result === undefined) return fail('The store has no leader');
              replica.answeredByStore(true);
              resolve(result.value);
            }),
          );
        });
      }),
    send: (replica: R, id: string, offer: Offer): void => {
      const to = [...connected.keys()].find((each) => each.id === id);
      if (to && connected.get(replica) && reaches(replica))
        deliver(replica, to, () => to.input({ type: 'offer', offer }));
    },
  };
};
