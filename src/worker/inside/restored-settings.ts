import { resolveTicketOptions, type TicketSettings, type TlsOptions } from '../../options.js';
import type { MovedSettings } from '../moved-settings.js';
import type { Asking } from './asking.js';

/** Makes settings of what crossed: the key wrapped again, and a function that asks for each that stayed behind. */
export const restoredSettings = ({ options, backoff, apiKey, asks }: MovedSettings, asking: Asking): TicketSettings =>
  resolveTicketOptions({
    ...options,
    apiKey: apiKey ?? asking.apiKey,
    backoff: { ...backoff, ...(asks.random && { random: asking.random }) },
    ...(asks.classify && { classify: asking.classify }),
    ...(options.tls && {
      tls: {
        ...withBuffers(options.tls),
        ...(asks.checkServerIdentity && { checkServerIdentity: asking.checkServerIdentity }),
      },
    }),
  });

// A structured clone leaves byte arrays of Buffers, and their text is a list of numbers.
const withBuffers = (tls: TlsOptions): TlsOptions =>
  Object.fromEntries(
    Object.entries(tls).map(([name, value]: [string, unknown]) => [
      name,
      Array.isArray(value) ? value.map(asBuffer) : asBuffer(value),
    ]),
  );

const asBuffer = (value: unknown): unknown => (value instanceof Uint8Array ? Buffer.from(value) : value);
