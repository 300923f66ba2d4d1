import { connect as netConnect, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { from, noop, type Observable, type ObservableInput, switchMap, using } from 'rxjs';
import { Client, type Dispatcher, request } from 'undici';
import type { Settings } from '../options.js';
import { withOwnCheck } from './tls.js';

/** A POST request, and the means to make it with. */
export interface Post extends Pick<Settings, 'dispatcher' | 'tls'> {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Posts once, follows no redirect, and gives the response to `read` as soon as its head is there.
 *
 * Emits and completes as what `read` returns; errors with what undici says. The request, its socket (also one that is still
 * being connected) and its body live as long as the subscription.
 */
export const post$ = <T>(post: Post, read: (response: Dispatcher.ResponseData) => ObservableInput<T>): Observable<T> =>
  using(
    () => start(post),
    (started) => from((started as Started).response).pipe(switchMap(read)),
  );

interface Started {
  readonly response: Promise<Dispatcher.ResponseData>;
  readonly unsubscribe: () => void;
}

const start = ({ url, headers, body, dispatcher, tls }: Post): Started => {
  const aborter = new AbortController();
  const means = dispatcher ? shared(dispatcher) : ownClient(url, tls);
  const response = request(url, {
    method: 'POST',
    headers,
    body,
    signal: aborter.signal,
    dispatcher: means.dispatcher,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  // A body that is cut off by the abort emits an error that nobody is left to hear.
  response.then((answer) => answer.body.on('error', noop), noop);
  return {
    response,
    unsubscribe: () => {
      aborter.abort();
      means.release();
    },
  };
};

interface Means {
  readonly dispatcher: Dispatcher;
  readonly release: () => void;
}

// A redirect interceptor of the user's would carry the key to wherever the answer points.
const shared = (dispatcher: Dispatcher): Means => ({
  dispatcher: dispatcher.compose(
    (dispatch) => (options, handler) =>
      dispatch({ ...options, maxRedirections: 0 } as Dispatcher.DispatchOptions, handler),
  ),
  release: noop,
});

// Neither an abort nor destroy() ends a connection that undici is still making: keep hold of its socket.
const ownClient = (url: URL, tls: Post['tls']): Means => {
  let socket: Socket | undefined;
  const client = new Client(url.origin, {
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: ({ protocol, hostname: host, port, servername }, callback) => {
      const secure = protocol === 'https:';
      const made = secure
        ? tlsConnect({ host, port: Number(port || 443), ...(servername && { servername }), ...withOwnCheck(tls) })
        : netConnect({ host, port: Number(port || 80) });
      socket = made;
      // An error may follow the connect within the same turn, before undici listens for it.
      made.on('error', (error: Error) => void client.destroy(error).catch(noop));
      made.once(secure ? 'secureConnect' : 'connect', () => callback(null, made));
    },
  });
  return {
    dispatcher: client,
    release: () => {
      client.destroy().catch(noop);
      socket?.destroy();
    },
  };
};
