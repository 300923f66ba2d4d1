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
import type { Settings } from '../options.js';
import { connectSocket } from './connect-socket.js';
import type { KeptSockets } from './kept-sockets.js';
import { type OwnClient, ownClient } from './own-client.js';

/** A POST request, and the means to make it with. */
export interface Post extends Pick<Settings, 'dispatcher' | 'tls'> {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What is kept from one POST to the next. @defaultValue nothing: the connection ends with the POST */
  readonly kept?: KeptSockets | undefined;
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
  const { url, tls, dispatcher, kept } = post;
  if (dispatcher) return sent$(post, { dispatcher: neverRedirected(dispatcher), release: noop }, read);

  const over$ = (client: OwnClient) =>
    sent$(post, { dispatcher: client.dispatcher, release: (isWhole) => release(client, isWhole, kept) }, read);

  return defer(() => {
    const connect = kept?.connectTicket ?? ((to: URL) => connectSocket(to, tls));
    const warm = kept?.takeClient();
    if (warm === undefined) return over$(ownClient(url, connect));

    const socket = warm.socket();
    const heardBytes = socket?.bytesRead;
    const wasUnanswered = () => warm.socket() === socket && socket?.bytesRead === heardBytes;
    return over$(warm).pipe(
      catchError((error: unknown) => (wasUnanswered() ? over$(ownClient(url, connect)) : throwError(() => error))),
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

// A refusal may come from a server behind a balancer that has no good one: the next POST shall find another.
const release = (client: OwnClient, isWhole: boolean, kept: KeptSockets | undefined): void => {
  if (isWhole && kept) kept.keepClient(client);
  else client.destroy();
};

// A redirect interceptor of the user's would carry the key to wherever the answer points.
const neverRedirected = (dispatcher: Dispatcher): Dispatcher =>
  dispatcher.compose(
    (dispatch) => (options, handler) =>
      dispatch({ ...options, maxRedirections: 0 } as Dispatcher.DispatchOptions, handler),
  );
