// A rule and what was measured, as a row of the report. What is no number meets no rule.

/** At most so much. */
export const atMost = (what, measured, limit, unit = '') =>
  row(what, `at most ${limit}`, measured, unit, measured <= limit);

/** At least so much. */
export const atLeast = (what, measured, limit, unit = '') =>
  row(what, `at least ${limit}`, measured, unit, measured >= limit);

/** Exactly so much. */
export const exactly = (what, measured, wanted, unit = '') =>
  row(what, String(wanted), measured, unit, measured === wanted);

/** Something that is so or is not; `measured` says what was seen. */
export const holds = (what, met, measured = met ? 'yes' : 'no') => row(what, 'yes', measured, '', met === true);

const row = (what, wanted, measured, unit, met) => ({
  what,
  wanted: unit ? `${wanted} ${unit}` : wanted,
  measured: measured ?? '–',
  met,
});
