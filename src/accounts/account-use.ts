import { createHmac, randomBytes } from 'node:crypto';
import type { TicketSettings } from '../options.js';
import { Secret } from '../protocol/secret.js';

/** A feed that uses an account. */
export interface AccountUser {
  /** The place in the program that created the feed, for messages. */
  readonly where: string;
  /**
   * Is called once for each other feed that uses the same account, with the places of both feeds. If this feed has no `warn`, the function
   * of the other feed is called.
   */
  readonly warn?: ((where: string, other: string) => void) | undefined;
}

/**
 * Registers a user of an account until the returned function is called. Two users of one account cause a warning, because their
 * connections replace each other (contract, section 3.2).
 *
 * Each subscription registers its user. A user that is already registered causes no further warning. A key from an `apiKey` function is not compared.
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

// One set for the process: two feeds in different modules can use the same account.
const uses = new Set<Use>();

// Without a salt, the fingerprint could be compared with hashes of guessed keys.
const salt = randomBytes(32);

const fingerprint = (baseUrl: string, apiKey: Secret): string =>
  createHmac('sha256', salt)
    .update(`${new URL(baseUrl).href.replace(/\/+$/, '')}\n${apiKey.reveal()}`)
    .digest('base64');
