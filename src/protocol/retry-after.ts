// RFC 9110, 5.6.7: the preferred form and the two obsolete ones, all in GMT.
const httpDates = [
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];

/** Parses an HTTP date (RFC 9110, 5.6.7) as epoch ms. Returns `undefined` for any other text. */
export const parseHttpDate = (text: string | undefined): number | undefined => {
  const value = text?.trim() ?? '';
  if (!httpDates.some((form) => form.test(value))) return undefined;
  const ms = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(ms) ? undefined : ms;
};

/**
 * Parses `Retry-After` (RFC 9110, 10.2.3; contract, section 7.1): seconds or an HTTP date. Returns the wait in ms: 0
 * for a date in the past, `undefined` without a valid header.
 *
 * @param date - the `Date` of the same response. With it, the local clock does not matter
 */
export const retryAfterMs = (value: string | undefined, date: string | undefined): number | undefined => {
  const text = value?.trim() ?? '';
  // Not Infinity: JSON cannot contain it, and the policy adds to the wait.
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER);
  const at = parseHttpDate(text);
  return at === undefined ? undefined : Math.max(0, at - (parseHttpDate(date) ?? Date.now()));
};
