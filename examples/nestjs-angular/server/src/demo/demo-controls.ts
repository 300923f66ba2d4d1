import type { LocalService } from './local-service.js';

/** An event that a viewer can cause at the local service. */
export interface DemoControl {
  /** The last part of the path. */
  readonly name: string;
  readonly title: string;
  /** A description. */
  readonly what: string;
  readonly cause: (service: LocalService) => void | Promise<void>;
}

/** Returns all events. */
export const demoControls = (seconds: number): readonly DemoControl[] => [
  {
    name: 'drop',
    title: 'Drop connection',
    what: 'The connection breaks without a close frame. The relay requests a new ticket at once.',
    cause: (service) => service.drop(),
  },
  {
    name: 'outage',
    title: `Outage of ${seconds} s`,
    what: 'The connection breaks, and the service answers ticket requests with 503. The relay retries with backoff.',
    cause: (service) => void service.outage(),
  },
  {
    name: 'shutdown',
    title: 'Shut down',
    what: `The service closes the connection with 1001, and restarts after ${seconds} s.`,
    cause: (service) => void service.shutdown(),
  },
  {
    name: 'expire',
    title: 'Let access expire',
    what: 'The service closes the connection with 4003 "access expired". It grants the next ticket.',
    cause: (service) => service.expireAccess(),
  },
  {
    name: 'flood',
    title: 'Flood',
    what: 'The service sends more frames than the relay can read, and closes the connection with 1013 "client too slow".',
    cause: (service) => service.flood(),
  },
  {
    name: 'revoke',
    title: 'Revoke access',
    what: 'The service closes the connection with 4003 "access revoked", and grants no tickets. The feed stops.',
    cause: (service) => service.revokeAccess(),
  },
  {
    name: 'restore',
    title: 'Restore access',
    what: 'The service grants tickets again, and an outage ends. Use the button at the top to connect again.',
    cause: (service) => service.restoreAccess(),
  },
  {
    name: 'replace',
    title: 'Connect elsewhere',
    what: 'Another client of the account connects: 4001 "connection replaced". The feed stops.',
    cause: (service) => service.replace(),
  },
  {
    name: 'scribble',
    title: 'Write to the service',
    what: 'A proxy sends a message to the service: 1008 "server push only". The feed stops.',
    cause: (service) => service.scribble(),
  },
];
