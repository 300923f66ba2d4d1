// A local service on a fixed port, whose accounts have the same keys after each restart, as those of a real service.
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { freePort } from '../../test/support/free-port.mjs';

/** Starts a service, by default on a free port. Returns it with its accounts and their keys. `onEvent` receives its events. */
export const startService = async ({ port, accounts: count, limits, onEvent }) => {
  // Below the ports that the system assigns to clients: a client that connects to an unused port can be assigned the same one, and is then
  // connected to itself.
  const service = await startTradeFeedService({ port: port ?? (await freePort()), limits });
  // In the same turn of the event loop, so that the accounts exist before the first ticket request.
  const accounts = Array.from({ length: count }, () => service.createAccount({ plan: 'developer' }));
  const keys = accounts.map((account, n) => account.createApiKey(`key_of_account_${n + 1}`));
  service.events$.subscribe(onEvent);
  return { service, accounts, keys };
};
