import { getDefaultResultOrder, setDefaultResultOrder } from 'node:dns';
import * as net from 'node:net';
import { resolveTicketOptions, type TicketSettings, type TlsOptions, type TradeFeedOptions } from '../feed/options.js';
import { isBytes, tryCall } from '../protocol/type-guards.js';
import { invalidOption } from '../protocol/validate.js';
import { Secret } from '../protocol/secret.js';
import { type BackoffPolicy, defaultBackoff } from '../feed/backoff.js';
import { setTlsDefaults, type TlsDefaults, tlsDefaults } from '../transport/tls-defaults.js';

const defaultBufferBytes = 256 * 1024 * 1024;

export interface CloneableSettings {
  readonly options: Omit<TradeFeedOptions, 'apiKey' | 'backoff'>;
  readonly backoff: Omit<BackoffPolicy, 'random' | 'scheduler'>;
  /** The key as plain text; `undefined` if `apiKey` is a function, since that runs on the main thread. */
  readonly apiKey: string | undefined;
  readonly receiveBufferBytes: number;
}

/**
 * Converts settings that passed {@link checkReceiveIn} to plain data. It has the key, so only the worker may get it.
 */
export const cloneableSettings = (settings: TicketSettings): CloneableSettings => {
  const { apiKey, backoff, receiveBufferBytes, ...options } = settings;
  const { random: _, scheduler: __, ...policy } = backoff;
  return {
    // Drops the symbol that marks validated settings, because the worker has to validate them again.
    options: Object.fromEntries(Object.entries(options)),
    backoff: policy,
    apiKey: apiKey instanceof Secret ? apiKey.reveal() : undefined,
    receiveBufferBytes: receiveBufferBytes ?? defaultBufferBytes,
  };
};

/** Restores the settings in a worker. The key is a `Secret`, or a function that asks the main thread for it. */
export const restoreSettings = (
  { options, backoff, apiKey }: CloneableSettings,
  askForKey: () => Promise<string>,
): TicketSettings =>
  resolveTicketOptions({
    ...options,
    apiKey: apiKey ?? askForKey,
    backoff,
    ...(options.tls && { tls: withBuffers(options.tls) }),
  });

// A structured clone turns Buffers into Uint8Arrays, whose `toString()` prints numbers.
const withBuffers = (tls: TlsOptions): TlsOptions =>
  Object.fromEntries(
    Object.entries(tls).map(([name, value]: [string, unknown]) => [
      name,
      Array.isArray(value) ? value.map(asBuffer) : asBuffer(value),
    ]),
  );

const asBuffer = (value: unknown): unknown => (isBytes(value) ? Buffer.from(value) : value);

export const checkReceiveIn = (settings: TicketSettings): TicketSettings => {
  if (settings.receiveIn !== 'worker') {
    if (settings.receiveBufferBytes === undefined) return settings;
    throw invalidOption('receiveBufferBytes', `left out without ${inAWorker}`);
  }
  const { dispatcher, agent, backoff, classify, tls = {} } = settings;
  if (dispatcher !== undefined) throw bound('dispatcher', 'its sockets are');
  if (agent !== undefined) throw bound('agent', 'its sockets are');
  if (classify !== undefined) throw uncallable('classify', `To decide verdicts yourself, leave out \`receiveIn\``);
  if (backoff.random !== defaultBackoff.random)
    throw uncallable('backoff.random', "For waits that aren't random, set `backoff.jitter` to 'none'");
  if (backoff.scheduler !== defaultBackoff.scheduler) throw bound('backoff.scheduler', 'its timers are');
  if (tls.checkServerIdentity !== undefined)
    throw uncallable('tls.checkServerIdentity', 'Trust only your own CA with `tls.ca`, or leave out `receiveIn`');
  for (const [name, value] of Object.entries(tls) as [keyof TlsOptions, unknown][])
    if (!isPlain(value)) throw bound(`tls.${name}`, 'a function or a handle is');
  return settings;
};

const inAWorker = "`receiveIn: 'worker'`";

const bound = (name: string, what: string) =>
  invalidOption(name, `left out with ${inAWorker}: ${what} bound to the thread that created it`);

const uncallable = (name: string, advice: string) =>
  invalidOption(name, `left out with ${inAWorker}: another thread can't call your function. ${advice}`);

const isPlain = (value: unknown): boolean => tryCall(() => [structuredClone(value)]) !== undefined;

/** Defaults for a thread's connections. A program or Node's flags can change them. */
export interface NetworkDefaults extends TlsDefaults {
  readonly order: ReturnType<typeof getDefaultResultOrder>;
  readonly autoSelectFamily: boolean;
  readonly attemptTimeoutMs: number;
}

export const networkDefaults = (): NetworkDefaults => ({
  ...tlsDefaults(),
  order: getDefaultResultOrder(),
  autoSelectFamily: net.getDefaultAutoSelectFamily(),
  attemptTimeoutMs: net.getDefaultAutoSelectFamilyAttemptTimeout(),
});

export const setNetworkDefaults = (defaults: NetworkDefaults): void => {
  const { order, autoSelectFamily, attemptTimeoutMs } = defaults;
  setTlsDefaults(defaults);
  setDefaultResultOrder(order);
  net.setDefaultAutoSelectFamily(autoSelectFamily);
  net.setDefaultAutoSelectFamilyAttemptTimeout(attemptTimeoutMs);
};
