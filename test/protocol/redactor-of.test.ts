import { describe, expect, it } from '@jest/globals';
import { parseTicket } from '../../src/protocol/parse-ticket.js';
import { redactorOf } from '../../src/protocol/redactor-of.js';
import type { Ticket } from '../../src/protocol/ticket.js';
import { wire } from './tickets.js';

describe('redactorOf', () => {
  it('hides the ticket, or the secrets of its redactor', () => {
    const ticket = parseTicket(JSON.stringify(wire)) as Ticket;
    expect(redactorOf(ticket)(`a ${wire.ticket} b`)).toBe('a [secret] b');
    const redact = (text: string) => `${text}, looked through`;
    expect(redactorOf({ ...ticket, redact })).toBe(redact);
  });
});
