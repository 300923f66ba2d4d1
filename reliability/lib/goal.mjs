// A rule and its measured value, as a row of the report. A value that isn't a number meets no rule.

/** Creates the rule that a value is at most a limit. */
export const atMost = (what, measured, limit, unit = '') =>
  row(what, `at most ${limit}`, measured, unit, measured <= limit);

/** Creates the rule that a value is at least a limit. */
export const atLeast = (what, measured, limit, unit = '') =>
  row(what, `at least ${limit}`, measured, unit, measured >= limit);

/** Creates the rule that a value is exactly another. */
export const exactly = (what, measured, wanted, unit = '') =>
  row(what, String(wanted), measured, unit, measured === wanted);

/** Creates the rule that a condition is met. `measured` is the text of the report. */
export const holds = (what, met, measured = met ? 'yes' : 'no') => row(what, 'yes', measured, '', met === true);

const row = (what, wanted, measured, unit, met) => ({
  what,
  wanted: unit ? `${wanted} ${unit}` : wanted,
  measured: measured ?? '–',
  met,
});
