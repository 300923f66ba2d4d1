import type { LocalService } from './local-service.js';

/** Something that a viewer can do to the local service. */
export interface DemoControl {
  /** The last part of its address. */
  readonly name: string;
  readonly title: string;
  /** What it does, in words. */
  readonly what: string;
  readonly cause: (service: LocalService) => void | Promise<void>;
}

/** All of them. */
export const demoControls = (seconds: number): readonly DemoControl[] => [
  {
    name: 'drop',
    title: 'Drop connection',
    what: 'The network breaks it off without a close frame. The relay takes a fresh ticket at once.',
    cause: (service) => service.drop(),
  },
  {
    name: 'outage',
    title: `Outage of ${seconds} s`,
    what: 'The connection breaks off, and the service grants no tickets: 503. The relay tries again with backoff.',
    cause: (service) => void service.outage(),
  },
  {
    name: 'shutdown',
    title: 'Shut down',
    what: `The service closes with 1001 and is gone for ${seconds} s.`,
    cause: (service) => void service.shutdown(),
  },
  {
    name: 'expire',
    title: 'Let access expire',
    what: 'The service closes with 4003 "access expired". The next ticket is granted.',
    cause: (service) => service.expireAccess(),
  },
  {
    name: 'flood',
    title: 'Flood',
    what: 'More frames at once than the relay can read: the service closes with 1013 "client too slow".',
    cause: (service) => service.flood(),
  },
  {
    name: 'revoke',
    title: 'Revoke access',
    what: 'The service closes with 4003 "access revoked" and grants no tickets: the feed stops.',
    cause: (service) => service.revokeAccess(),
  },
  {
    name: 'restore',
    title: 'Restore access',
    what: 'Tickets are granted again. Connect again by the button at the top.',
    cause: (service) => service.restoreAccess(),
  },
  {
    name: 'replace',
    title: 'Connect elsewhere',
    what: 'Another client of the account takes over: 4001 "connection replaced". The feed stops.',
    cause: (service) => service.replace(),
  },
  {
    name: 'scribble',
    title: 'Write to the service',
    what: 'Something on the way sends a message to the service: 1008 "server push only". The feed stops.',
    cause: (service) => service.scribble(),
  },
];
