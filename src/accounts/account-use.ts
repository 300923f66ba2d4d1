import { createHmac, randomBytes } from 'node:crypto';
import type { TicketSettings } from '../options.js';
import { Secret } from '../protocol/secret.js';

/** A feed that uses an account. */
export interface AccountUser {
  /** The place in the program, for a person. */
  readonly where: string;
  /** Is called with the places of this feed and of another one that uses the same account: once for each such pair. */
  readonly warn?: ((where: string, other: string) => void) | undefined;
}

/**
 * Registers a user of an account until the returned function is called. Two users of one account get a warning, because their connections
 * replace each other (contract, section 3.2).
 *
 * A user may be registered several times: it is removed with the last call. Keys of `apiKey` functions cannot be compared.
 */
export const useAccount = ({ baseUrl, apiKey }: TicketSettings, user: AccountUser): (() => void) => {
  if (!(apiKey instanceof Secret)) return () => undefined;
  const use: Use = { account: fingerprint(baseUrl, apiKey), user };
  const sameAccount = Array.from(uses).filter(({ account }) => account === use.account);
  uses.add(use);
  const others = new Set(sameAccount.map((other) => other.user));
  if (!others.has(user)) for (const other of others) (user.warn ?? other.warn)?.(user.where, other.where);
  return () => uses.delete(use);
};

interface Use {
  readonly account: string;
  readonly user: AccountUser;
}

// Of the whole process, like the accounts that it uses.
const uses = new Set<Use>();

// A hash alone could be compared with hashes of guessed keys.
const salt = randomBytes(32);

const fingerprint = (baseUrl: string, apiKey: Secret): string =>
  createHmac('sha256', salt)
    .update(`${new URL(baseUrl).href.replace(/\/+$/, '')}\n${apiKey.reveal()}`)
    .digest('base64');
