import type * as undici from 'undici';
import type * as ws from 'ws';
import { applyClassify, type ClassifyOption } from '../protocol/failures/trade-feed-error.js';
import { failureFor } from '../protocol/failures/classify.js';
import { row } from '../protocol/failures/meanings.js';

export type HttpClient = typeof undici;
export type WebSocketClient = typeof ws;

// These packages take longer to load than RxJS, and many programs that import this one never open a connection: they
// record, replay or relay. So each is loaded when the first connection needs it.

/**
 * Loads `ws` as well, so the handshake doesn't wait for it. Rejects with `receiver-failed` if a package is missing.
 *
 * @param hasOpened - whether a connection of the subscription has opened
 */
export const loadHttpClient = async (settings: ClassifyOption = {}, hasOpened = false): Promise<HttpClient> => {
  const [client] = await loaded(settings, hasOpened, Promise.all([import('undici'), import('ws')]));
  return client;
};

export const loadWebSocketClient = (settings: ClassifyOption, hasOpened = false): Promise<WebSocketClient> =>
  loaded(settings, hasOpened, import('ws'));

const loaded = async <Client>(
  settings: ClassifyOption,
  hasOpened: boolean,
  loading: Promise<Client>,
): Promise<Client> => {
  try {
    return await loading;
  } catch (cause) {
    // If a package is missing, Node appends the list of files that required it.
    const [detail] = (cause as Error).message.split('\n');
    const facts = { stage: 'ticket', hasOpened, detail, cause } as const;
    throw applyClassify(settings, failureFor(notLoaded, facts));
  }
};

/** What to do if a file of the library can't be loaded. */
export const ifBundled = 'If your app is a bundle, mark `rx-trade-feed` as external (esbuild: `--packages=external`)';

// A deploy may replace the files of a running program, so what has worked may only be missing for a moment.
export const notLoaded = row({ afterOpened: 'backoff' }, 'receiver-failed', 'stop', [
  "The packages that open connections (`undici` and `ws`) couldn't be loaded.",
  `${ifBundled}. Otherwise install the packages again.`,
]);
