import dns from 'node:dns';
import { connect, getDefaultAutoSelectFamilyAttemptTimeout, type LookupFunction, type Socket } from 'node:net';

// Node tries the addresses of a host one after the other, and gives each but the last 250 ms. If it cuts one short, and
// no other one answers as fast, the connection is made once more, this time to the address that answers first, whenever
// that is: only the deadline of the attempt ends it. Not from the start, because it takes one connection more.

type NodeError = Partial<NodeJS.ErrnoException> & { readonly errors?: readonly NodeJS.ErrnoException[] };

/** Returns whether Node gave up an address that might have answered later. */
export const wasCutShort = (error: unknown): boolean => {
  const { errors, cause } = Object(error) as NodeError;
  return errors?.some(({ code }) => code === 'ETIMEDOUT') ?? (cause !== undefined && wasCutShort(cause));
};

/** Ends a connection that waits for the last address after another one was cut short, with an error that says so. */
export const limitLast = (socket: Socket): Socket => {
  let timeout: NodeJS.Timeout | undefined;
  let isCut = false;
  const giveUp = (): void => {
    const error = Object.assign(new Error('no address answered in time'), { code: 'ETIMEDOUT' });
    socket.destroy(new AggregateError([error]));
  };
  const stop = (): void => clearTimeout(timeout);
  return socket
    .on('connectionAttemptTimeout', () => (isCut = true))
    .on('connectionAttempt', () => {
      stop();
      // Twice as long as the other addresses have, so that Node goes on by itself if it isn't the last one.
      if (isCut) timeout = setTimeout(giveUp, 2 * getDefaultAutoSelectFamilyAttemptTimeout());
    })
    .once('connect', stop)
    .once('close', stop);
};

export interface Race {
  /** Resolves a host to the address that accepts a connection first. Fails with an error for each address. */
  readonly lookup: LookupFunction;
  readonly stop: () => void;
}

/** @param onAddress - gets each address that is tried */
export const raceTo = (port: number, onAddress: (address: string) => void): Race => {
  let racing: readonly Socket[] = [];
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    racing.forEach((socket) => socket.destroy());
  };
  const lookup: LookupFunction = (host, options, done) =>
    dns.lookup(host, { ...options, all: true }, (error, found) => {
      if (isOver || error !== null || found.length < 2) return done(error, found);
      const errors: Error[] = [];
      racing = found.map((each) => {
        onAddress(each.address);
        return connect({ host: each.address, port })
          .unref()
          .once('connect', () => {
            stop();
            done(null, [each]);
          })
          .once('error', (failed) => {
            if (errors.push(failed) === found.length) done(new AggregateError(errors, messageOf({ errors })), []);
          });
      });
    });
  return { lookup, stop };
};

/** Returns the message of an error. Connecting to several addresses fails with an error for each. */
export const messageOf = (error: unknown): string | undefined => {
  const { errors, message } = Object(error) as NodeError;
  if (Array.isArray(errors)) return errors.map((each: unknown) => messageOf(each) ?? String(each)).join(', ');
  return typeof message === 'string' ? message : undefined;
};

/** How many origins are remembered. A service may name a new origin in every ticket. */
const MAX_ORIGINS = 4;

/** Remembers which origins need a race, and their addresses that have not answered yet. */
export const createAddresses = () => {
  const tried = new Map<string, Set<string>>();
  const slow = new Set<string>();
  const triedAt = (origin: string): Set<string> => {
    const addresses = tried.get(origin) ?? new Set();
    if (tried.size >= MAX_ORIGINS) tried.clear();
    tried.set(origin, addresses);
    return addresses;
  };
  return {
    /** Returns the race for the next connection to an origin, if it needs one. */
    raceTo: (origin: string, port: number): Race | undefined =>
      slow.has(origin) ? raceTo(port, (address) => triedAt(origin).add(address)) : undefined,
    follow: (origin: string, socket: Socket): Socket =>
      socket
        .on('connectionAttempt', (address: string) => triedAt(origin).add(address))
        .once('connect', () => tried.delete(origin))
        .once('error', (error) => {
          if (slow.size >= MAX_ORIGINS) slow.clear();
          if (wasCutShort(error)) slow.add(origin);
        }),
    /** Returns `''`, or the addresses of an origin, if there are several and none has answered. */
    triedAt: (origin: string): string => {
      const addresses = [...(tried.get(origin) ?? [])];
      return addresses.length < 2 ? '' : ` from ${addresses.join(' and ')}`;
    },
  };
};

export type Addresses = ReturnType<typeof createAddresses>;
