import { rules } from './rules.js';
import type { Seen, Subscribed } from './seen.js';

/** Holds what was seen of one subscription against the ten rules; gives each violation once, with the name of its rule. */
export const violations = (log: readonly Seen[], facts: Subscribed): readonly string[] =>
  Object.entries(rules).flatMap(([rule, check]) => [...new Set(check(log, facts))].map((wrong) => `${rule}: ${wrong}`));
