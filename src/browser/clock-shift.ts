/** Clocks that differ by less are taken for equal: the estimate is not better than that on a slow network. */
const toleranceMs = 1_000;

/**
 * Estimates by how much the clock of this machine is ahead of the relay's, as NTP does (RFC 5905, section 8); 0 when it may be right.
 *
 * @param askedAt - when the request was sent, by this clock, in epoch ms
 * @param heardAt - when the answer was heard, by this clock
 * @param relayAt - when it was sent, by the clock of the relay
 */
export const clockShiftMs = (askedAt: number, heardAt: number, relayAt: number): number => {
  const halfTripMs = (heardAt - askedAt) / 2;
  const shiftMs = Math.round(askedAt + halfTripMs - relayAt);
  return Math.abs(shiftMs) <= toleranceMs + halfTripMs ? 0 : shiftMs;
};
