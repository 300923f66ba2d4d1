// Many accounts over few replicas: rendezvous hashing picks the replicas that may own an account, without a coordinator.
import { createHash } from 'node:crypto';

const weight = (account, replica) => createHash('sha256').update(`${account}\n${replica}`).digest().readUIntBE(0, 6);

/** Returns the replicas that may own an account (`canOwn`), the best first. All replicas compute the same list. */
export const candidates = (account, replicas, count = 3) =>
  replicas.toSorted((a, b) => weight(account, b) - weight(account, a)).slice(0, count);

/** Returns how many accounts each replica owns if its first candidate owns each account. */
export const ownedBy = (accounts, replicas) => {
  const owned = new Map(replicas.map((replica) => [replica, 0]));
  for (const account of accounts) {
    const [owner] = candidates(account, replicas);
    owned.set(owner, owned.get(owner) + 1);
  }
  return owned;
};
