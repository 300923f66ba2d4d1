import { randomBytes } from 'node:crypto';
import { boolean, checkOptions, checkValue, definedOnly, oneOf } from '../options/check-options.js';
import type { AccountOptions, AccountRecord, TradeFeedAccount } from './account.js';
import type { ServiceState } from './service-state.js';

const plan = oneOf('free', 'developer');

/** Creates an account of a service. */
export const createAccount = (state: ServiceState, options: AccountOptions = {}): TradeFeedAccount => {
  checkOptions(options, { within: { plan, active: boolean, entitled: boolean } });
  const id = `account-${state.accounts.size + 1}`;
  const record: AccountRecord = {
    id,
    plan: 'free',
    active: true,
    entitled: true,
    window: undefined,
    ...definedOnly(options),
  };
  state.accounts.set(id, record);
  return {
    id,
    get plan() {
      return record.plan;
    },
    createApiKey: () => {
      const key = `key_${randomBytes(24).toString('base64url')}`;
      state.keys.set(key, record);
      return key;
    },
    expireAccess: () => state.connections.of(id)?.signal('access-expired'),
    revokeAccess: () => {
      record.entitled = false;
      for (const { feed } of state.tickets.revokeOf(id)) state.emit({ type: 'ticket-revoked', account: id, feed });
      state.connections.of(id)?.signal('access-revoked');
    },
    restoreAccess: () => {
      record.active = true;
      record.entitled = true;
    },
    setPlan: (next) => {
      checkValue('plan', next, plan);
      record.plan = next;
      state.connections.of(id)?.setDelayed(next === 'free');
    },
  };
};
