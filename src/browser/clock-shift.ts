/** Estimates that differ by less are taken for equal: they are not better than that on a slow network. */
const toleranceMs = 1_000;

/**
 * Estimates by how much the clock of this machine is ahead of the relay's, as NTP does (RFC 5905, section 8). Keeps the estimate of the
 * connection before when it may be right: times that move a little with each connection would fall in other windows.
 *
 * @param askedAt - when the request was sent, by this clock, in epoch ms
 * @param heardAt - when the answer was heard, by this clock
 * @param relayAt - when it was sent, by the clock of the relay
 * @param before - the estimate of the connection before, in ms; 0 at first
 */
export const clockShiftMs = (askedAt: number, heardAt: number, relayAt: number, before: number): number => {
  const halfTripMs = (heardAt - askedAt) / 2;
  const shiftMs = Math.round(askedAt + halfTripMs - relayAt);
  return Math.abs(shiftMs - before) <= toleranceMs + halfTripMs ? before : shiftMs;
};
