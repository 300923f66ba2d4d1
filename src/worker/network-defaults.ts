import { getDefaultResultOrder, setDefaultResultOrder } from 'node:dns';
import * as net from 'node:net';

/** What a program or its flags set for the connections of a whole thread. */
export interface NetworkDefaults {
  readonly order: ReturnType<typeof getDefaultResultOrder>;
  readonly autoSelectFamily: boolean;
  readonly attemptTimeoutMs: number;
}

/** Reads them on this thread. */
export const networkDefaults = (): NetworkDefaults => ({
  order: getDefaultResultOrder(),
  autoSelectFamily: net.getDefaultAutoSelectFamily(),
  attemptTimeoutMs: net.getDefaultAutoSelectFamilyAttemptTimeout(),
});

/** Sets them on this thread. */
export const setNetworkDefaults = ({ order, autoSelectFamily, attemptTimeoutMs }: NetworkDefaults): void => {
  setDefaultResultOrder(order);
  net.setDefaultAutoSelectFamily(autoSelectFamily);
  net.setDefaultAutoSelectFamilyAttemptTimeout(attemptTimeoutMs);
};
