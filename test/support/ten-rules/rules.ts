import { connectionsAtOnce, grammar } from './attempts.js';
import { afterTheEnd, verdicts } from './endings.js';
import { frames, gaps, lostBeforeClose } from './frames.js';
import { failuresOf, of } from './of.js';
import { requestSecrets, ticketUse, toldSecrets } from './secrets.js';
import type { Seen, Subscribed } from './seen.js';
import { floors, kept, zeros } from './waits.js';

/** Gives what is wrong, in words; nothing when the rule is kept. */
export type RuleCheck = (log: readonly Seen[], facts: Subscribed) => readonly string[];

/** The ten rules of the design's section 5, as far as they show from outside: by what was seen of one subscription. */
export const rules: Readonly<Record<string, RuleCheck>> = {
  '1: one attempt at a time, with one open connection': (log) => [...grammar(log), ...connectionsAtOnce(log)],
  '2: the key and the ticket go where they belong and nowhere else': (log, facts) => [
    ...requestSecrets(log, facts),
    ...toldSecrets(log, facts),
  ],
  '3: a ticket is used once, and as it was returned': (log) => ticketUse(log),
  '4: what ended stays ended, and all is released': (log) => afterTheEnd(log),
  '5: frames once, in order, unchanged; loss is told': (log, facts) => [
    ...frames(log, facts),
    ...lostBeforeClose(log),
    ...gaps(log),
  ],
  '6: nothing is sent': (log) =>
    of(log, 'client-frame')
      .filter(({ opcode }) => ![8, 9, 10].includes(opcode))
      .map(({ opcode }) => `the client sent a frame with opcode ${opcode}`),
  '7: waits are kept, and none is zero twice': (log, facts) => [
    ...floors(log),
    ...kept(log, facts),
    ...zeros(log, facts),
  ],
  '8: what the consumer throws is the consumer’s': (log, { isOwnError }) =>
    failuresOf(log)
      .filter(({ failure }) => isOwnError(failure) || isOwnError(failure.cause))
      .map(({ failure }) => `an exception of the consumer was taken for ${failure.code}`),
  '4 of the contract: what stops, stops': (log, { isOwnError }) => verdicts(log, isOwnError),
};
