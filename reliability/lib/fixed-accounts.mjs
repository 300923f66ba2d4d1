// Accounts that stay the same after a restart, as those of a real service do. The local service draws new keys each time.
import crypto, { createHash } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

/** Creates accounts whose keys follow from a seed, so they are the same after each restart. Returns the accounts and their keys. */
export const createFixedAccounts = (service, seed, count) => {
  const { randomBytes } = crypto;
  let drawn = 0;
  const draw = (length) => {
    drawn += 1;
    return createHash('sha256').update(`${seed} ${drawn}`).digest().subarray(0, length);
  };
  // Only while the accounts are created: tickets remain random.
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
