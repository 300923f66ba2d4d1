import { getDefaultResultOrder, setDefaultResultOrder } from 'node:dns';
import * as net from 'node:net';

/** Defaults for the connections of a thread. A program or the flags of Node can change them. */
export interface NetworkDefaults {
  readonly order: ReturnType<typeof getDefaultResultOrder>;
  readonly autoSelectFamily: boolean;
  readonly attemptTimeoutMs: number;
}

/** Returns the defaults of this thread. */
export const networkDefaults = (): NetworkDefaults => ({
  order: getDefaultResultOrder(),
  autoSelectFamily: net.getDefaultAutoSelectFamily(),
  attemptTimeoutMs: net.getDefaultAutoSelectFamilyAttemptTimeout(),
});

/** Sets the defaults of this thread. */
export const setNetworkDefaults = ({ order, autoSelectFamily, attemptTimeoutMs }: NetworkDefaults): void => {
  setDefaultResultOrder(order);
  net.setDefaultAutoSelectFamily(autoSelectFamily);
  net.setDefaultAutoSelectFamilyAttemptTimeout(attemptTimeoutMs);
};
