import { rules } from './rules.js';
import type { Seen, Subscribed } from './seen.js';

/** Checks the log of one subscription against the ten rules. Returns each violation once, with the name of the rule. */
export const violations = (log: readonly Seen[], facts: Subscribed): readonly string[] =>
  Object.entries(rules).flatMap(([rule, check]) => [...new Set(check(log, facts))].map((wrong) => `${rule}: ${wrong}`));
