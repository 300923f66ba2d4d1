import type { TicketSettings, TlsOptions, TradeFeedOptions } from '../options.js';
import { invalidOption } from '../protocol/rules.js';
import { Secret } from '../protocol/secret.js';
import { type BackoffPolicy, defaultBackoff } from '../reconnect/policy.js';

/** How much is held for a main thread that is blocked, unless it is said. */
const defaultBufferBytes = 256 * 1024 * 1024;

/** Settings on their way into a worker: plain data. What is a function stays behind, and is asked from there. */
export interface MovedSettings {
  readonly options: Omit<TradeFeedOptions, 'apiKey' | 'backoff' | 'classify'>;
  readonly backoff: Omit<BackoffPolicy, 'random' | 'scheduler'>;
  /** The key in plain; `undefined` when a function gives it. */
  readonly apiKey: string | undefined;
  readonly receiveBufferBytes: number;
  /** The functions of the user's that are to be asked. */
  readonly asks: { readonly classify: boolean; readonly random: boolean; readonly checkServerIdentity: boolean };
}

/** Makes settings ready to cross. Gives them only to the worker: the key is in them. */
export const movedSettings = (settings: TicketSettings): MovedSettings => {
  const { apiKey, backoff, classify, tls, receiveIn: _, receiveBufferBytes, ...options } = settings;
  const { random, scheduler: __, ...policy } = backoff;
  const { checkServerIdentity, ...plainTls } = tls ?? {};
  return {
    // What has a symbol for a name belongs to this thread.
    options: { ...Object.fromEntries(Object.entries(options)), ...(tls && { tls: plainTls }) },
    backoff: policy,
    apiKey: apiKey instanceof Secret ? apiKey.reveal() : undefined,
    receiveBufferBytes: receiveBufferBytes ?? defaultBufferBytes,
    asks: {
      classify: classify !== undefined,
      random: random !== defaultBackoff.random,
      checkServerIdentity: checkServerIdentity !== undefined,
    },
  };
};

/**
 * Checks that settings can cross into a worker, if they are to, and that they need not, if not.
 *
 * @throws TradeFeedError with code `invalid-options`, naming the option that is bound to the thread it was made on
 */
export const checkMovable = (settings: TicketSettings): TicketSettings => {
  if (settings.receiveIn !== 'worker') {
    if (settings.receiveBufferBytes === undefined) return settings;
    throw invalidOption('receiveBufferBytes', `left out without ${inAWorker}`);
  }
  const { dispatcher, agent, backoff, standby, tls = {} } = settings;
  if (dispatcher !== undefined) throw bound('dispatcher', 'its sockets are');
  if (agent !== undefined) throw bound('agent', 'its sockets are');
  if (backoff.scheduler !== defaultBackoff.scheduler) throw bound('backoff.scheduler', 'its timers are');
  for (const [name, value] of Object.entries(tls) as [keyof TlsOptions, unknown][])
    if (name !== 'checkServerIdentity' && !isPlain(value)) throw bound(`tls.${name}`, 'a function or a handle is');
  // They are asked for when a connection is made, and the worker stands still until they have answered.
  if (standby && (tls.checkServerIdentity !== undefined || backoff.random !== defaultBackoff.random))
    throw invalidOption(
      'standby',
      `left out with ${inAWorker} and a \`tls.checkServerIdentity\` or a \`backoff.random\``,
    );
  return settings;
};

const inAWorker = "`receiveIn: 'worker'`";

const bound = (name: string, what: string) =>
  invalidOption(name, `left out with ${inAWorker}: ${what} bound to the thread that made it`);

const isPlain = (value: unknown): boolean => {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
};
