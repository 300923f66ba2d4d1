import type { Refusal, RefusalRule } from './refusal.js';

/** The path of the ticket endpoint (contract, section 4.1). */
export const ticketPath = '/v1/wss/tickets';
/** The path of the data connection (contract, section 4.2). */
export const streamPath = '/ws';

/** What a request is judged by before it is given to an endpoint. */
export interface RouteFacts {
  readonly path: string;
  readonly method: string;
}

/** The refusals of a plain HTTP request: the contract names two addresses, each with one method (section 4). */
export const routeRules: readonly RefusalRule<RouteFacts>[] = [
  {
    status: 404,
    code: 'not-found',
    message: `There is nothing here; the addresses are ${ticketPath} and ${streamPath}.`,
    when: ({ path }) => path !== ticketPath && path !== streamPath,
  },
  {
    status: 405,
    code: 'method-not-allowed',
    message: 'A ticket is requested with POST.',
    headers: { Allow: 'POST' },
    when: ({ path, method }) => path === ticketPath && method !== 'POST',
  },
  {
    status: 405,
    code: 'method-not-allowed',
    message: 'A data connection is opened with GET.',
    headers: { Allow: 'GET' },
    when: ({ path, method }) => path === streamPath && method !== 'GET',
  },
];

/** The refusal of a plain GET where a handshake belongs. */
export const upgradeRequired: Refusal = {
  status: 426,
  code: 'upgrade-required',
  message: 'This address answers WebSocket handshakes only.',
  headers: { Upgrade: 'websocket', Connection: 'Upgrade' },
};

/** The refusal of whatever comes in while the service shuts down. */
export const shuttingDown: Refusal = {
  status: 503,
  code: 'shutting-down',
  message: 'The service shuts down.',
  headers: { Connection: 'close' },
};

/** The refusal of a body beyond `limits.requestBytes`. */
export const requestTooLarge: Refusal = {
  status: 413,
  code: 'request-too-large',
  message: 'The body is too large.',
  headers: { Connection: 'close' },
};

/** What the form of a handshake is judged by (RFC 6455, section 4.2.1). */
export interface UpgradeFacts extends RouteFacts {
  readonly upgrade: string;
  readonly key: string;
  readonly version: string;
}

const notAHandshake = { status: 400, code: 'not-a-websocket-handshake' } as const;

/**
 * The refusals of a request that is no WebSocket handshake at all (RFC 6455, section 4.2.2). They come before the ticket is
 * looked at: such a request reserves none.
 */
export const upgradeRules: readonly RefusalRule<UpgradeFacts>[] = [
  ...routeRules,
  {
    ...notAHandshake,
    message: 'The ticket endpoint takes no upgrade.',
    when: ({ path }) => path === ticketPath,
  },
  {
    ...notAHandshake,
    message: 'The Upgrade header must be "websocket".',
    when: ({ upgrade }) => upgrade.toLowerCase() !== 'websocket',
  },
  {
    ...notAHandshake,
    message: 'The Sec-WebSocket-Key header must hold 16 bytes in base64.',
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

/** Gives the path of a request target, without its query. */
export const pathOf = (target: string): string => target.replace(/\?.*$/s, '');
