import { resolveTicketOptions, type TicketSettings, type TlsOptions } from '../../options.js';
import type { CloneableSettings } from '../cloneable-settings.js';
import type { UserFunctions } from './user-functions.js';

/** Restores the settings in a worker: with the key as a `Secret`, and with the functions of the user. */
export const restoreSettings = (
  { options, backoff, apiKey, hasFunction }: CloneableSettings,
  functions: UserFunctions,
): TicketSettings =>
  resolveTicketOptions({
    ...options,
    apiKey: apiKey ?? functions.apiKey,
    backoff: { ...backoff, ...(hasFunction.random && { random: functions.random }) },
    ...(hasFunction.classify && { classify: functions.classify }),
    ...(options.tls && {
      tls: {
        ...withBuffers(options.tls),
        ...(hasFunction.checkServerIdentity && { checkServerIdentity: functions.checkServerIdentity }),
      },
    }),
  });

// A structured clone turns a Buffer into a Uint8Array, whose `toString()` prints numbers.
const withBuffers = (tls: TlsOptions): TlsOptions =>
  Object.fromEntries(
    Object.entries(tls).map(([name, value]: [string, unknown]) => [
      name,
      Array.isArray(value) ? value.map(asBuffer) : asBuffer(value),
    ]),
  );

const asBuffer = (value: unknown): unknown => (value instanceof Uint8Array ? Buffer.from(value) : value);
