import { createHmac, randomBytes } from 'node:crypto';
import { isAbsolute, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { printable } from '../protocol/printable.js';
import { isCredential, Secret } from '../protocol/secret.js';
import type { TicketSettings } from './options.js';

export interface AccountUser {
  /** Where in the program the feed was created, for messages. */
  readonly where: string;
  /**
   * Receives the warning that another feed uses the same account. If neither feed has it, the process emits the
   * warning. @defaultValue none
   */
  readonly warn?: ((text: string) => void) | undefined;
  /**
   * Users in the same group don't replace each other: a module and its feed, or the replicas of a cluster.
   * @defaultValue none
   */
  readonly group?: unknown;
}

/**
 * Warns, once per pair, if two users share an account: their connections replace each other (contract, section 3.2). A
 * key from an `apiKey` function can be compared only after the function returned it.
 *
 * @returns the settings for the feed, whose `apiKey` function registers the keys it returns, and a function to call at
 *   its end
 */
export const useAccount = (settings: TicketSettings, user: AccountUser) => {
  const { baseUrl, apiKey, warnings = true } = settings;
  const use: Use = { account: undefined, user, warnings };
  const setKey = (key: Secret): void => {
    const account = fingerprint(baseUrl, key);
    if (!uses.has(use) || use.account === account) return;
    use.account = account;
    compare(use);
  };
  uses.add(use);
  const end = (): void => void uses.delete(use);
  if (apiKey instanceof Secret) {
    setKey(apiKey);
    return { settings, end };
  }
  const readKey = async (): Promise<string> => {
    const key = await apiKey();
    // The ticket request refuses anything else.
    if (isCredential(key)) setKey(new Secret(key));
    return key;
  };
  return { settings: { ...settings, apiKey: readKey }, end };
};

/** Returns the warning that two feeds use one account. */
const sameAccountText = (earlier: string, later: string): string => {
  const who = earlier === later ? `Two subscriptions of ${later} use` : 'Two feeds of this process use';
  const places = earlier === later ? '' : `: ${earlier}, and ${later}`;
  return (
    `${who} the same account${places}. An account has one connection, so the newer one closes the other one for good ` +
    '(connection-replaced). Use one feed in both places, for example with `shareFeed()`, or a separate account for each'
  );
};

interface Use {
  account: string | undefined;
  readonly user: AccountUser;
  readonly warnings: boolean;
}

// One set per process: feeds in different modules may use the same account.
const uses = new Set<Use>();

// Two feeds with `retry` keep replacing each other, and should be reported only once, whichever is newer.
const warned = new WeakMap<AccountUser, WeakSet<AccountUser>>();
const isWarned = (one: AccountUser, other: AccountUser): boolean => warned.get(one)?.has(other) ?? false;

const compare = (use: Use): void => {
  const inOrder = [...uses];
  for (const other of inOrder) {
    if (other === use || other.account !== use.account) continue;
    if (inOrder.indexOf(other) < inOrder.indexOf(use)) warn(other, use);
    else warn(use, other);
  }
};

const warn = (earlier: Use, later: Use): void => {
  const [one, other] = [earlier.user, later.user];
  const isGroup = one.group !== undefined && one.group === other.group;
  if (isGroup || !earlier.warnings || !later.warnings) return;
  const log = other.warn ?? one.warn;
  if (log) return warnOnce(one, other, log);
  // A `complete` or `error` handler may resubscribe before the subscription that ended has released its use.
  queueMicrotask(() => {
    if (uses.has(earlier) && uses.has(later)) warnOnce(one, other, warnProcess);
  });
};

const warnOnce = (one: AccountUser, other: AccountUser, emit: (text: string) => void): void => {
  if (isWarned(one, other) || isWarned(other, one)) return;
  warned.set(one, (warned.get(one) ?? new WeakSet()).add(other));
  emit(sameAccountText(one.where, other.where));
};

const warnProcess = (text: string): void =>
  process.emitWarning(printable(`${text}. The option \`warnings: false\` turns this warning off.`), {
    type: 'TradeFeedWarning',
    code: 'connection-replaced',
  });

// Salted, so that the fingerprint can't be compared with hashes of guessed keys.
const salt = randomBytes(32);

const fingerprint = (baseUrl: string, apiKey: Secret): string =>
  createHmac('sha256', salt)
    .update(`${new URL(baseUrl).href.replace(/\/+$/, '')}\n${apiKey.reveal()}`)
    .digest('base64');

/**
 * Returns where the caller was called, for messages: file, line and column. Paths inside the working directory are
 * relative.
 */
export const callPlace = (): string => {
  const trace: { readonly stack?: unknown } = {};
  Error.captureStackTrace(trace, callPlace);
  // Line 0 is the error, line 1 the function that calls `callPlace`, line 2 its caller.
  const frame = String(trace.stack).split('\n')[2] ?? '';
  // Either `at name (file:1:2)` or `at file:1:2`.
  const address = /\((.+)\)$/.exec(frame)?.[1] ?? frame.replace(/^ *at (async )?/, '');
  const [, file, position] = /^(.+?)((?::\d+){2})$/.exec(address) ?? [];
  return file === undefined || position === undefined ? 'an unknown place' : pathOf(file) + position;
};

const pathOf = (file: string): string => {
  const path = file.startsWith('file:') ? fileURLToPath(file) : file;
  const inside = relative(process.cwd(), path);
  return inside.startsWith('..') || isAbsolute(inside) ? path : inside;
};
