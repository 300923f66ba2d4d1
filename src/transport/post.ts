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
import { type Dispatcher, request } from 'undici';
import type { AttemptSockets } from './reusable-sockets.js';
import { createTicketClient, type TicketClient } from './ticket-client.js';

/** A POST request, and the means to make it with. */
export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The user's own dispatcher, which replaces `sockets`. */
  readonly dispatcher?: Dispatcher | undefined;
  readonly sockets: AttemptSockets;
}

type Read<T> = (response: Dispatcher.ResponseData) => ObservableInput<T>;

/**
 * Posts once, follows no redirect, and gives the response to `read` as soon as its head is there.
 *
 * Emits and completes as what `read` returns; errors with what undici says. The request, its socket (also one that is still
 * being connected) and its body live as long as the subscription; a connection whose answer was a 200, read to its end, may
 * be kept for the next POST. One that was kept and is closed before any byte of an answer is no answer: the server may close
 * an idle connection at any time (RFC 9112, 9.3.1), so the request is sent once more, on a fresh one.
 */
export const post$ = <T>(post: Post, read: Read<T>): Observable<T> => {
  const { url, dispatcher, sockets } = post;
  if (dispatcher) return sent$(post, { dispatcher: neverRedirected(dispatcher), release: noop }, read);

  const over$ = (client: TicketClient) => {
    // A refusal may come from an overloaded server behind a load balancer: a new connection can reach another server.
    const release = (isWhole: boolean) => (isWhole ? sockets.storeClient(client) : client.destroy());
    return sent$(post, { dispatcher: client.dispatcher, release }, read);
  };

  return defer(() => {
    const warm = sockets.takeClient();
    if (warm === undefined) return over$(createTicketClient(url, sockets.connectTicket));

    const socket = warm.socket();
    const heardBytes = socket?.bytesRead;
    const wasUnanswered = () => warm.socket() === socket && socket?.bytesRead === heardBytes;
    return over$(warm).pipe(
      catchError((error: unknown) =>
        wasUnanswered() ? over$(createTicketClient(url, sockets.connectTicket)) : throwError(() => error),
      ),
    );
  });
};

interface Means {
  readonly dispatcher: Dispatcher;
  /** Called once: with whether a 200 was read to its end, or when nobody wants the answer any more. */
  readonly release: (isWhole: boolean) => void;
}

const sent$ = <T>(post: Post, means: Means, read: Read<T>): Observable<T> =>
  using(
    () => start(post, means),
    (started) => from((started as Started).response).pipe(switchMap(read)),
  );

interface Started {
  readonly response: Promise<Dispatcher.ResponseData>;
  readonly unsubscribe: () => void;
}

const start = ({ url, headers, body }: Post, { dispatcher, release }: Means): Started => {
  const aborter = new AbortController();
  const response = request(url, {
    method: 'POST',
    headers,
    body,
    signal: aborter.signal,
    dispatcher,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let answer: Dispatcher.ResponseData | undefined;
  response.then((given) => {
    answer = given;
    // A body that is cut off by the abort emits an error that nobody is left to hear.
    given.body.on('error', noop);
  }, noop);
  return {
    response,
    unsubscribe: () => {
      const isWhole = answer?.statusCode === 200 && answer.body.readableEnded;
      if (!isWhole) aborter.abort();
      release(isWhole);
    },
  };
};

// A redirect interceptor of the user's would carry the key to wherever the answer points.
const neverRedirected = (dispatcher: Dispatcher): Dispatcher =>
  dispatcher.compose(
    (dispatch) => (options, handler) =>
      dispatch({ ...options, maxRedirections: 0 } as Dispatcher.DispatchOptions, handler),
  );
