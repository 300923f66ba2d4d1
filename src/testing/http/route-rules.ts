import type { Refusal, RefusalRule } from './refusal.js';

/** The path of the ticket endpoint (contract, section 4.1). */
export const ticketPath = '/v1/wss/tickets';
/** The path of the data connection (contract, section 4.2). */
export const streamPath = '/ws';

/** The facts that the route rules check. */
export interface RouteFacts {
  readonly path: string;
  readonly method: string;
}

/** The refusals of a plain HTTP request: the contract has two addresses, each with one method (section 4). */
export const routeRules: readonly RefusalRule<RouteFacts>[] = [
  {
    status: 404,
    code: 'not-found',
    message: `Unknown address; the addresses are ${ticketPath} and ${streamPath}.`,
    when: ({ path }) => path !== ticketPath && path !== streamPath,
  },
  {
    status: 405,
    code: 'method-not-allowed',
    message: 'Use POST to request a ticket.',
    headers: { Allow: 'POST' },
    when: ({ path, method }) => path === ticketPath && method !== 'POST',
  },
  {
    status: 405,
    code: 'method-not-allowed',
    message: 'Use GET to open a data connection.',
    headers: { Allow: 'GET' },
    when: ({ path, method }) => path === streamPath && method !== 'GET',
  },
];

/** The refusal of a plain GET at the address of the data connection. */
export const upgradeRequired: Refusal = {
  status: 426,
  code: 'upgrade-required',
  message: 'This address accepts only WebSocket handshakes.',
  headers: { Upgrade: 'websocket', Connection: 'Upgrade' },
};

/** The refusal of all requests while the service shuts down. */
export const shuttingDown: Refusal = {
  status: 503,
  code: 'shutting-down',
  message: 'The service is shutting down.',
  headers: { Connection: 'close' },
};

/** The refusal of a body larger than `limits.requestBytes`. */
export const requestTooLarge: Refusal = {
  status: 413,
  code: 'request-too-large',
  message: 'The body is too large.',
  headers: { Connection: 'close' },
};

/** The facts that the upgrade rules check (RFC 6455, section 4.2.1). */
export interface UpgradeFacts extends RouteFacts {
  readonly upgrade: string;
  readonly key: string;
  readonly version: string;
}

const notAHandshake = { status: 400, code: 'not-a-websocket-handshake' } as const;

/**
 * The refusals of a request that is not a valid WebSocket handshake (RFC 6455, section 4.2.2). They are checked before the ticket, so a
 * malformed request does not reserve its ticket.
 */
export const upgradeRules: readonly RefusalRule<UpgradeFacts>[] = [
  ...routeRules,
  {
    ...notAHandshake,
    message: 'The ticket endpoint does not accept upgrades.',
    when: ({ path }) => path === ticketPath,
  },
  {
    ...notAHandshake,
    message: 'The Upgrade header must be "websocket".',
    when: ({ upgrade }) => upgrade.toLowerCase() !== 'websocket',
  },
  {
    ...notAHandshake,
    message: 'The Sec-WebSocket-Key header must be 16 bytes in base64.',
    when: ({ key }) => !/^[+/0-9A-Za-z]{22}==$/.test(key),
  },
  {
    status: 426,
    code: 'upgrade-required',
    message: 'The Sec-WebSocket-Version header must be 13.',
    headers: { 'Sec-WebSocket-Version': '13' },
    when: ({ version }) => version !== '13',
  },
];

/** Returns the path of a request target, without the query. */
export const pathOf = (target: string): string => target.replace(/\?.*$/s, '');
