/** Estimates that differ by less count as equal, because a slow network does not allow a better estimate. */
const toleranceMs = 1_000;

/**
 * Estimates how far the clock of this machine is ahead of the relay's, like NTP (RFC 5905, section 8). Returns the estimate of the previous
 * connection if it may be right. Otherwise times would change a little with each connection, and fall into other windows.
 *
 * @param requestedAt - when the request was sent, by this clock, in epoch ms
 * @param receivedAt - when the answer arrived, by this clock
 * @param relayAt - when the answer was sent, by the clock of the relay
 * @param before - the estimate of the previous connection, in ms; 0 at first
 */
export const clockShiftMs = (requestedAt: number, receivedAt: number, relayAt: number, before: number): number => {
  const halfTripMs = (receivedAt - requestedAt) / 2;
  const shiftMs = Math.round(requestedAt + halfTripMs - relayAt);
  return Math.abs(shiftMs - before) <= toleranceMs + halfTripMs ? before : shiftMs;
};
