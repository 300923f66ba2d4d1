import type * as undici from 'undici';
import type * as ws from 'ws';

// These packages take longer to load than RxJS, and many programs that import this package open no connection: they record, replay or relay.
// So a package is loaded when the first connection needs it. Later calls return the loaded package.

/** Loads the HTTP client for ticket requests, and the WebSocket client, so that the handshake that follows does not wait for it. */
export const loadHttpClient = async (): Promise<typeof undici> => {
  const [client] = await Promise.all([import('undici'), import('ws')]);
  return client;
};

/** Loads the WebSocket client. */
export const loadWebSocketClient = (): Promise<typeof ws> => import('ws');
