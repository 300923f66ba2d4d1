// RFC 3339, 5.6. A leap second (:60) is valid, but `Date.parse` rejects it.
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** Parses an RFC 3339 timestamp as epoch ms. Returns `NaN` for any other text. */
export const parseTimestamp = (text: string): number =>
  rfc3339.test(text) ? Date.parse(text.toUpperCase().replace(/:60(?=[.Z+-])/, ':59')) : NaN;
