import { connectionsAtOnce, grammar } from './attempts.js';
import { afterTheEnd, verdicts } from './endings.js';
import { frames, gaps, lostBeforeClose } from './frames.js';
import { failuresOf, entriesOf } from './entries-of.js';
import { requestSecrets, ticketUse, emittedSecrets } from './secrets.js';
import type { Seen, Subscribed } from './seen.js';
import { floors, observedDelays, zeros } from './waits.js';

/** Returns the violations of a rule, as text. */
type RuleCheck = (log: readonly Seen[], facts: Subscribed) => readonly string[];

/** The ten rules of the feed, as far as the log of one subscription shows them. */
const rules: Readonly<Record<string, RuleCheck>> = {
  '1: one attempt at a time, with one open connection': (log) => [...grammar(log), ...connectionsAtOnce(log)],
  '2: the key is only in the ticket request, the ticket only in the handshake': (log, facts) => [
    ...requestSecrets(log, facts),
    ...emittedSecrets(log, facts),
  ],
  '3: a ticket is used once and unchanged': (log) => ticketUse(log),
  '4: after the end nothing is emitted, and everything is released': (log) => afterTheEnd(log),
  '5: frames arrive once, in order and unchanged; every loss is reported': (log, facts) => [
    ...frames(log, facts),
    ...lostBeforeClose(log),
    ...gaps(log),
  ],
  '6: the client sends no message': (log) =>
    entriesOf(log, 'client-frame')
      .filter(({ opcode }) => ![8, 9, 10].includes(opcode))
      .map(({ opcode }) => `the client sent a frame with opcode ${opcode}`),
  '7: delays are observed, and there are never two zero delays in a row': (log, facts) => [
    ...floors(log),
    ...observedDelays(log, facts),
    ...zeros(log, facts),
  ],
  '8: an exception of the consumer is not a failure of the feed': (log, { isOwnError }) =>
    failuresOf(log)
      .filter(({ failure }) => isOwnError(failure) || isOwnError(failure.cause))
      .map(({ failure }) => `an exception of the consumer was reported as ${failure.code}`),
  'the failure table: the feed stops for a verdict of stop only': (log, { isOwnError }) => verdicts(log, isOwnError),
};

/** Checks the log of one subscription against the ten rules. Returns each violation once, with the name of the rule. */
export const violations = (log: readonly Seen[], facts: Subscribed): readonly string[] =>
  Object.entries(rules).flatMap(([rule, check]) => [...new Set(check(log, facts))].map((wrong) => `${rule}: ${wrong}`));
