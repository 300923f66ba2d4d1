import { describe, expect, it } from '@jest/globals';
import { left, right } from 'fp-ts/lib/Either.js';
import { firstRefusal } from '../../../src/testing/http/refusal.js';
import { type TicketFacts, ticketRules } from '../../../src/testing/ticket/ticket-rules.js';

const granted: TicketFacts = {
  credentialsFail: false,
  account: { active: true, entitled: true },
  retryAfterSeconds: undefined,
  body: right('market'),
};

/** Each fault alone, in the order of the checks. */
const faults: readonly (readonly [status: number, code: string, fault: Partial<TicketFacts>])[] = [
  [503, 'credential-service-unavailable', { credentialsFail: true }],
  [401, 'invalid-api-key', { account: undefined }],
  [403, 'account-inactive', { account: { active: false, entitled: false } }],
  [403, 'not-entitled', { account: { active: true, entitled: false } }],
  [429, 'rate-limited', { retryAfterSeconds: 1 }],
  [422, 'invalid-body', { body: left('invalid-body') }],
  [422, 'unknown-feed', { body: left('unknown-feed') }],
];

describe('the refusals of the ticket endpoint (contract 7.1)', () => {
  it('grants a ticket if no rule applies', () => {
    expect(firstRefusal(ticketRules, granted)).toBeUndefined();
  });

  it.each(faults)('%d %s', (status, code, fault) => {
    expect(firstRefusal(ticketRules, { ...granted, ...fault })).toMatchObject({ status, code });
  });

  it.each(faults.map((row, index) => [row[1], index] as const))(
    '%s is checked before the later rules',
    (code, index) => {
      const all = faults.slice(index).reduceRight((facts, [, , fault]) => ({ ...facts, ...fault }), granted);
      expect(firstRefusal(ticketRules, all)).toMatchObject({ code });
    },
  );

  it('has only the rules of this table', () => {
    expect(ticketRules.map(({ status, code }) => [status, code])).toEqual(
      faults.map(([status, code]) => [status, code]),
    );
  });
});
