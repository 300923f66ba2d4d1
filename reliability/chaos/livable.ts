import type { Faults } from '../../test/support/fault-proxy.js';

/** Slower, and a stream that is sent at full rate would still be on its way when all is calm. */
const LEAST_BYTES_PER_SECOND = 100_000;

/** The same faults, with a bandwidth that one can live with. */
export const livable = ({ toClient, toServer, ...rest }: Faults): Faults => ({
  ...rest,
  ...(toClient ? { toClient: widened(toClient) } : {}),
  ...(toServer ? { toServer: widened(toServer) } : {}),
});

const widened = <F extends { readonly bytesPerSecond?: number }>(flow: F): F =>
  flow.bytesPerSecond === undefined
    ? flow
    : { ...flow, bytesPerSecond: Math.max(LEAST_BYTES_PER_SECOND, flow.bytesPerSecond) };
