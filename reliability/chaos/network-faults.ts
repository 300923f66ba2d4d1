import type { Faults } from '../../test/support/faults.js';

/** With less bandwidth, frames of the chaos would still be on their way when the recovery begins. */
const MIN_BYTES_PER_SECOND = 100_000;

/** Returns the same faults with a minimum bandwidth. */
export const withMinimumBandwidth = ({ toClient, toServer, ...rest }: Faults): Faults => ({
  ...rest,
  ...(toClient ? { toClient: widened(toClient) } : {}),
  ...(toServer ? { toServer: widened(toServer) } : {}),
});

const widened = <F extends { readonly bytesPerSecond?: number }>(flow: F): F =>
  flow.bytesPerSecond === undefined
    ? flow
    : { ...flow, bytesPerSecond: Math.max(MIN_BYTES_PER_SECOND, flow.bytesPerSecond) };
