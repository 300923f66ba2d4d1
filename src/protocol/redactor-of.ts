import { redactor } from './secret.js';
import type { Ticket } from './ticket.js';

/** Returns a function that hides the secrets of a ticket in a text from the service. */
export const redactorOf = ({ ticket, redact = redactor(ticket) }: Ticket): ((text: string) => string) => redact;
