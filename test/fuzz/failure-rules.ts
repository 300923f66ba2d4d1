import { expect } from '@jest/globals';
import { TradeFeedError } from 'rx-trade-feed';
import { everythingIn } from '../support/everything-in.js';
import { expectedFailure } from '../support/failure-table.js';
import type { Outcome } from '../support/feed.js';

/** The secrets of every case. */
export const plantedKey = 'planted-key-5be1';
export const plantedTicket = 'planted-ticket-90c4';

// No answer of a server causes these: the options are valid, and there is no TLS.
const notFromServer = ['api-key-unavailable', 'invalid-options', 'retries-exhausted', 'untrusted-certificate'];

// Characters that could move a cursor, forge a line of a log, or reverse text.
const harmful = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;
const longestTimerMs = 2 ** 31 - 1;

/** Checks the rules for every end of an attempt at any server. Returns the code. */
export const checkOutcome = ({ failure, goesOn, delayMs, events }: Outcome): string => {
  expect(failure).toBeInstanceOf(TradeFeedError);
  const { code, stage, verdict, message, advice, retryAfterMs } = failure;
  expect({ stage, code, verdict }).toEqual(expectedFailure(failure));
  expect(notFromServer).not.toContain(code);
  for (const text of [message, advice]) {
    expect(text.length).toBeGreaterThan(10);
    expect(text).not.toMatch(harmful);
  }
  expect(goesOn).toBe(verdict !== 'stop');
  if (retryAfterMs !== undefined) expect([retryAfterMs >= 0, Number.isFinite(retryAfterMs)]).toEqual([true, true]);
  if (delayMs !== undefined) {
    expect(delayMs).toBeGreaterThanOrEqual(Math.max(1, Math.min(retryAfterMs ?? 0, longestTimerMs)));
    expect(delayMs).toBeLessThanOrEqual(longestTimerMs);
  }
  // A frame contains exactly the bytes that the service sent.
  const told = everythingIn([failure, String(failure.stack), ...events.filter(({ type }) => type !== 'frame')]);
  for (const secret of [plantedKey, plantedTicket]) expect(told.toLowerCase()).not.toContain(secret);
  return code;
};
