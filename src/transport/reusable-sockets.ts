import { noop, type Observable, Subject } from 'rxjs';
import type { Settings } from '../options.js';
import { thrownByOption } from '../protocol/failures/thrown-by-option.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type Connect, type ConnectWith, connectSocket } from './connect-socket.js';
import { type BufferedSocket, readIntoBuffer } from './read-buffer.js';
import { resumingConnect } from './resuming-connect.js';
import { spareSocket } from './spare-socket.js';
import type { TicketClient } from './ticket-client.js';

/** Functions that an attempt uses to connect. They never store a ticket. */
export interface AttemptSockets {
  /** Connects for a handshake. */
  readonly connectStream: Connect<BufferedSocket>;
  /** Connects for a ticket request. */
  readonly connectTicket: Connect;
  /** Removes and returns the client of the last ticket request, if it is stored and not destroyed. */
  readonly takeClient: () => TicketClient | undefined;
  /** Stores a client whose last request was answered completely. */
  readonly storeClient: (client: TicketClient) => void;
  /** Opens a spare connection for the handshake, while the ticket is requested. */
  readonly openSpare: () => void;
  /** Keeps a spare connection to both endpoints open while the stream is open, if the option `standby` is on. */
  readonly standBy: () => void;
  /** Returns the failure that ended the previous attempt; `undefined` in the first attempt. */
  readonly lastFailure: () => TradeFeedError | undefined;
}

/** The sockets of one subscription, which its attempts reuse. */
export interface ReusableSockets extends AttemptSockets {
  /** Never emits. Errors if the option `backoff` throws while a spare connection is renewed: the error of the feed. */
  readonly errors$: Observable<never>;
  /** Stores the failure that ended an attempt, and destroys stored connections that may not work after it. */
  readonly attemptFailed: (failure: TradeFeedError) => void;
  /** Destroys all stored connections. A client that is stored later is destroyed at once. */
  readonly release: () => void;
}

/**
 * Creates the sockets that all attempts of one subscription reuse, so that a reconnect takes as few round trips as possible: the
 * connection of the last ticket request, the TLS sessions, and a spare connection for the next handshake.
 */
export const reusableSockets = ({ tls, standby, backoff }: Settings): ReusableSockets => {
  const connect = resumingConnect(tls);
  const errors$ = new Subject<never>();
  const onError = (thrown: unknown) => errors$.error(thrownByOption('backoff', thrown));
  const spare = spareSocket(readIntoBuffer(connect), backoff, onError);
  const spareForTicket = spareSocket(connect, backoff, onError);
  let client: TicketClient | undefined;
  let lastFailure: TradeFeedError | undefined;
  let isReleased = false;

  const dropSpares = () => {
    spare.drop();
    spareForTicket.drop();
  };
  return {
    errors$,
    connectStream: spare.take,
    connectTicket: spareForTicket.take,
    takeClient: () => {
      const stored = client;
      client = undefined;
      return stored?.dispatcher.destroyed ? undefined : stored;
    },
    storeClient: (answered) => {
      if (isReleased) answered.destroy();
      else client = answered;
    },
    openSpare: spare.open,
    standBy: () => {
      if (!standby) return;
      spare.standBy();
      spareForTicket.standBy(client?.socket());
    },
    lastFailure: () => lastFailure,
    attemptFailed: (failure) => {
      lastFailure = failure;
      const wasSilent = failure.code === 'connection-stalled';
      // If no connection opened, the service may be in trouble: the next attempt opens no spare connection.
      if (failure.stage !== 'stream' || wasSilent) dropSpares();
      // The stored connection uses the same route. A request over it could hang until its deadline.
      if (wasSilent) client?.destroy();
    },
    release: () => {
      isReleased = true;
      dropSpares();
      client?.destroy();
    },
  };
};

/** Creates the sockets of an operator that is used without the feed: each attempt opens new connections, and none is stored. */
export const freshSockets = ({ tls }: Pick<Settings, 'tls'>): AttemptSockets => {
  const connect: ConnectWith = (url, onread) => connectSocket(url, tls, undefined, onread);
  return {
    connectStream: readIntoBuffer(connect),
    connectTicket: connect,
    takeClient: () => undefined,
    storeClient: (client) => client.destroy(),
    openSpare: noop,
    standBy: noop,
    lastFailure: () => undefined,
  };
};
