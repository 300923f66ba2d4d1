import type { TicketSettings } from '../options.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { fromCloneable, toCloneable } from './cloneable-error.js';
import type { CallResult, UserCall } from './messages.js';
import { restoreCertificate } from './restore-certificate.js';
import type { ThrownValues } from './thrown-values.js';

/** Calls a function of the user for the worker. The worker receives an exception as plain data: see {@link ThrownValues}. */
export const callUser = (call: UserCall, settings: TicketSettings, values: ThrownValues): CallResult<unknown> => {
  try {
    return { value: valueOf(call, settings, values) };
  } catch (thrown) {
    return { thrown: toCloneable(thrown, values) };
  }
};

/** Calls the user's `apiKey` function. Returns `undefined` if the result is not a string: it might not be cloneable. */
export const callApiKey = async (
  { apiKey }: TicketSettings,
  values: ThrownValues,
): Promise<CallResult<string | undefined>> => {
  try {
    const key: unknown = await (apiKey as () => unknown)();
    return { value: typeof key === 'string' ? key : undefined };
  } catch (thrown) {
    return { thrown: toCloneable(thrown, values) };
  }
};

// Returns only plain data: `postMessage` cannot clone every value that a function of the user may return.
const valueOf = (call: UserCall, settings: TicketSettings, values: ThrownValues): unknown => {
  switch (call.name) {
    case 'classify': {
      const failure = fromCloneable(call.failure, values) as TradeFeedError;
      return plain(settings.classify?.(failure, call.verdict));
    }
    case 'random':
      return plain(settings.backoff.random());
    case 'checkServerIdentity':
      return refusal(() => settings.tls?.checkServerIdentity?.(call.host, restoreCertificate(call.certificate)));
  }
};

const plain = (value: unknown): unknown =>
  typeof value === 'object' || typeof value === 'function' ? undefined : value;

// Only the message of an error matters here, whether it is returned or thrown.
const refusal = (check: () => Error | undefined): string | undefined => {
  try {
    const refused = check();
    return refused?.message;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
};
