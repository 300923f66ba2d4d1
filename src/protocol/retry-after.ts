// RFC 9110, 5.6.7: the preferred form and the two obsolete ones, all in GMT.
const httpDates = [
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];

/** Reads an HTTP date (RFC 9110, 5.6.7) as epoch ms; `undefined` when it is none. */
export const parseHttpDate = (text: string | undefined): number | undefined => {
  const value = text?.trim() ?? '';
  if (!httpDates.some((form) => form.test(value))) return undefined;
  const ms = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(ms) ? undefined : ms;
};

/**
 * Reads `Retry-After` (RFC 9110, 10.2.3; contract, section 7.1): seconds, or an HTTP date that is held against the `Date`
 * of the same response, so that the local clock does not matter; without a `Date` it is held against that.
 *
 * @param value - the header; anything that is neither form counts as missing
 * @param date - the response's `Date` header
 * @returns the wait in ms, 0 for a date that has passed, `undefined` when nothing usable was sent
 */
export const retryAfterMs = (value: string | undefined, date: string | undefined): number | undefined => {
  const text = value?.trim() ?? '';
  // Seconds without end are still a number: JSON has no other, and a policy adds to them.
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER);
  const at = parseHttpDate(text);
  return at === undefined ? undefined : Math.max(0, at - (parseHttpDate(date) ?? Date.now()));
};
