// RFC 9110, 5.6.7: the preferred form and the two obsolete ones, all in GMT.
const httpDates = [
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];

export const parseHttpDate = (text: string | undefined): number | undefined => {
  // Stryker disable next-line StringLiteral: without a header there is no date, whatever the text.
  const value = text?.trim() ?? '';
  if (!httpDates.some((form) => form.test(value))) return undefined;
  // Stryker disable next-line MethodExpression: Date.parse accepts a second GMT.
  const ms = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(ms) ? undefined : ms;
};

/** Returns how long to wait, in ms (RFC 9110, 10.2.3). If `date` is the response's, the local clock doesn't matter. */
export const retryAfterMs = (value: string | undefined, date: string | undefined): number | undefined => {
  // Stryker disable next-line StringLiteral: without a header there are neither seconds nor a date, whatever the text.
  const text = value?.trim() ?? '';
  // Some servers send fractions, though the RFC has none. Not Infinity: JSON can't hold it, and the policy adds to it.
  if (/^(\d+(\.\d*)?|\.\d+)$/.test(text)) return Math.min(Math.ceil(Number(text)) * 1000, Number.MAX_SAFE_INTEGER);
  const at = parseHttpDate(text);
  return at === undefined ? undefined : Math.max(0, at - (parseHttpDate(date) ?? Date.now()));
};
