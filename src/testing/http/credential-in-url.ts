import { unescape } from 'node:querystring';
import type { ServiceState } from '../service/service-state.js';

/** Tells whether a request target holds an API key or a ticket of this service (contract, sections 4.1 and 4.2). */
export const hasCredential = ({ keys, tickets }: ServiceState, target: string): boolean =>
  target.split(/[/?&=;]/).some((piece) => {
    const text = unescape(piece);
    return keys.has(text) || tickets.has(text);
  });
