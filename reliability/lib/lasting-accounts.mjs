// Accounts that outlive a restart: the local service draws its keys anew, a real one keeps them.
import crypto, { createHash } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

/** Makes accounts whose keys follow from a seed, in order: the same after each restart. Gives the accounts and their keys. */
export const lastingAccounts = (service, seed, count) => {
  const { randomBytes } = crypto;
  let drawn = 0;
  const draw = (length) => {
    drawn += 1;
    return createHash('sha256').update(`${seed} ${drawn}`).digest().subarray(0, length);
  };
  // Only while accounts are made: tickets are drawn as ever.
  Object.assign(crypto, { randomBytes: draw });
  syncBuiltinESMExports();
  try {
    return Array.from({ length: count }, () => {
      const account = service.createAccount({ plan: 'developer' });
      return { account, key: account.createApiKey() };
    });
  } finally {
    Object.assign(crypto, { randomBytes });
    syncBuiltinESMExports();
  }
};
