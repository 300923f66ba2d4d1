import {
  catchError,
  defer,
  from,
  noop,
  type Observable,
  type ObservableInput,
  switchMap,
  throwError,
  using,
} from 'rxjs';
import type * as undici from 'undici';
import type { Dispatcher } from 'undici';
import type { AttemptSockets } from './reusable-sockets.js';
import { createTicketClient, type TicketClient } from './ticket-client.js';

/** A POST request. */
export interface Post {
  /** The HTTP client. */
  readonly client: typeof undici;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The user's dispatcher. With it, `sockets` are not used. */
  readonly dispatcher?: Dispatcher | undefined;
  readonly sockets: AttemptSockets;
}

type Read<T> = (response: Dispatcher.ResponseData) => ObservableInput<T>;

/**
 * Sends one POST request, and calls `read` with the response when its head has arrived. Does not follow redirects.
 *
 * Emits and completes with the Observable that `read` returns. Errors with the error of undici. Unsubscribing ends the request and its
 * socket, also while it connects. After a complete 200 response, the connection is stored for the next POST.
 * If a stored connection is closed before the first byte of the answer, the request is sent again over a new connection: the server may
 * close an idle connection at any time (RFC 9112, 9.3.1).
 */
export const post$ = <T>(post: Post, read: Read<T>): Observable<T> => {
  const { client: http, url, dispatcher, sockets } = post;
  if (dispatcher) return sent$(post, { dispatcher: neverRedirected(dispatcher), release: noop }, read);

  const over$ = (client: TicketClient) => {
    // After any other status the connection is closed. Through a load balancer, a new connection can reach another server.
    const release = (isComplete: boolean) => (isComplete ? sockets.storeClient(client) : client.destroy());
    return sent$(post, { dispatcher: client.dispatcher, release }, read);
  };

  return defer(() => {
    const stored = sockets.takeClient();
    if (stored === undefined) return over$(createTicketClient(http, url, sockets.connectTicket));

    const socket = stored.socket();
    const bytesBefore = socket?.bytesRead;
    const wasUnanswered = () => stored.socket() === socket && socket?.bytesRead === bytesBefore;
    return over$(stored).pipe(
      catchError((error: unknown) =>
        wasUnanswered() ? over$(createTicketClient(http, url, sockets.connectTicket)) : throwError(() => error),
      ),
    );
  });
};

interface Connection {
  readonly dispatcher: Dispatcher;
  /** Is called once, at the end of the request. `isComplete`: a 200 response was read completely. */
  readonly release: (isComplete: boolean) => void;
}

const sent$ = <T>(post: Post, connection: Connection, read: Read<T>): Observable<T> =>
  using(
    () => start(post, connection),
    (started) => from((started as Started).response).pipe(switchMap(read)),
  );

interface Started {
  readonly response: Promise<Dispatcher.ResponseData>;
  readonly unsubscribe: () => void;
}

const start = ({ client, url, headers, body }: Post, { dispatcher, release }: Connection): Started => {
  const aborter = new AbortController();
  const response = client.request(url, {
    method: 'POST',
    headers,
    body,
    signal: aborter.signal,
    dispatcher,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let answer: Dispatcher.ResponseData | undefined;
  response.then((received) => {
    answer = received;
    // After an abort the body emits an error, which would end the process without a listener.
    received.body.on('error', noop);
  }, noop);
  return {
    response,
    unsubscribe: () => {
      const isComplete = answer?.statusCode === 200 && answer.body.readableEnded;
      if (!isComplete) aborter.abort();
      release(isComplete);
    },
  };
};

// A redirect interceptor in the user's dispatcher would send the key to the address of the redirect.
const neverRedirected = (dispatcher: Dispatcher): Dispatcher =>
  dispatcher.compose(
    (dispatch) => (options, handler) =>
      dispatch({ ...options, maxRedirections: 0 } as Dispatcher.DispatchOptions, handler),
  );
