import type { TicketSettings, TlsOptions, TradeFeedOptions } from '../options.js';
import { invalidOption } from '../protocol/rules.js';
import { Secret } from '../protocol/secret.js';
import { type BackoffPolicy, defaultBackoff } from '../reconnect/policy.js';

/** Default of `receiveBufferBytes`. */
const defaultBufferBytes = 256 * 1024 * 1024;

/** Settings as plain data for a worker. Functions stay on the main thread, and the worker calls them there. */
export interface CloneableSettings {
  readonly options: Omit<TradeFeedOptions, 'apiKey' | 'backoff' | 'classify'>;
  readonly backoff: Omit<BackoffPolicy, 'random' | 'scheduler'>;
  /** The key as plain text; `undefined` if `apiKey` is a function. */
  readonly apiKey: string | undefined;
  readonly receiveBufferBytes: number;
  /** Which functions the user passed. */
  readonly hasFunction: { readonly classify: boolean; readonly random: boolean; readonly checkServerIdentity: boolean };
}

/** Converts settings to plain data. The result contains the key: send it only to the worker. */
export const cloneableSettings = (settings: TicketSettings): CloneableSettings => {
  const { apiKey, backoff, classify, tls, receiveIn: _, receiveBufferBytes, ...options } = settings;
  const { random, scheduler: __, ...policy } = backoff;
  const { checkServerIdentity, ...plainTls } = tls ?? {};
  return {
    // Without the symbol that marks validated settings: the worker validates the options again.
    options: { ...Object.fromEntries(Object.entries(options)), ...(tls && { tls: plainTls }) },
    backoff: policy,
    apiKey: apiKey instanceof Secret ? apiKey.reveal() : undefined,
    receiveBufferBytes: receiveBufferBytes ?? defaultBufferBytes,
    hasFunction: {
      classify: classify !== undefined,
      random: random !== defaultBackoff.random,
      checkServerIdentity: checkServerIdentity !== undefined,
    },
  };
};

/**
 * Checks the settings for `receiveIn`. With `'worker'`, a worker must be able to use them; otherwise `receiveBufferBytes` must be absent.
 *
 * @throws TradeFeedError with code `invalid-options`, naming the option that cannot be used
 */
export const checkReceiveIn = (settings: TicketSettings): TicketSettings => {
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
  // A standby connection calls these functions while the stream is open. The worker cannot read the stream until they return.
  if (standby && (tls.checkServerIdentity !== undefined || backoff.random !== defaultBackoff.random))
    throw invalidOption(
      'standby',
      `left out with ${inAWorker} and a \`tls.checkServerIdentity\` or a \`backoff.random\``,
    );
  return settings;
};

const inAWorker = "`receiveIn: 'worker'`";

const bound = (name: string, what: string) =>
  invalidOption(name, `left out with ${inAWorker}: ${what} bound to the thread that created it`);

const isPlain = (value: unknown): boolean => {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
};
