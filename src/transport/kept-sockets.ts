import type { Settings } from '../options.js';
import type { LifecycleEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Connect } from './connect-socket.js';
import type { OwnClient } from './own-client.js';
import { resumingConnect } from './resuming-connect.js';
import { spareSocket } from './spare-socket.js';

/**
 * What one subscription keeps from attempt to attempt, so that a reconnect waits for as little as can be: the connection of the
 * last ticket request, the TLS sessions, and a spare connection for the next handshake; and what ended the last one. Never a ticket.
 */
export interface KeptSockets {
  /** Connects for a handshake. */
  readonly connect: Connect;
  /** Connects for a ticket request. */
  readonly connectTicket: Connect;
  /** Gives the client of the last ticket request away, if it was kept and is good. */
  readonly takeClient: () => OwnClient | undefined;
  /** Keeps a client whose last request was answered in full. */
  readonly keepClient: (client: OwnClient) => void;
  /**
   * Hears how the subscription fares. A spare connection is made while a ticket is requested, and let go with the attempt; one
   * that never opened is followed by a wait, and by an attempt without: a service in trouble is not connected to in vain.
   */
  readonly follow: (event: LifecycleEvent) => void;
  /** Gives what ended the attempt before; `undefined` in the first one. */
  readonly lastFailure: () => TradeFeedError | undefined;
  /** Destroys all that is kept; what is given back later is destroyed at once. */
  readonly release: () => void;
}

/** The key of the settings under which the attempts of one subscription find what it keeps. */
export const keptSockets = Symbol('keptSockets');

/** Settings of a subscription that keeps sockets; those of a building block that is used alone keep none. */
export interface Keeping {
  readonly [keptSockets]?: KeptSockets;
}

/** Keeps the sockets of one subscription. */
export const keepSockets = ({ tls, standby, backoff }: Settings): KeptSockets => {
  const connect = resumingConnect(tls);
  const spare = spareSocket(connect, backoff);
  const spareForTicket = spareSocket(connect, backoff);
  let client: OwnClient | undefined;
  let lastFailure: TradeFeedError | undefined;
  let isReleased = false;

  const drop = () => {
    spare.drop();
    spareForTicket.drop();
  };
  return {
    connect: spare.take,
    connectTicket: spareForTicket.take,
    takeClient: () => {
      const kept = client;
      client = undefined;
      return kept?.dispatcher.destroyed ? undefined : kept;
    },
    keepClient: (answered) => {
      if (isReleased) answered.destroy();
      else client = answered;
    },
    follow: (event) => {
      if (event.type === 'ticket-requested') spare.open();
      if (event.type === 'disconnected') {
        lastFailure = event.failure;
        const { stage, code } = lastFailure;
        const wasSilent = code === 'connection-stalled';
        if (stage !== 'stream' || wasSilent) drop();
        // What was kept on the same way may hang as well, for the whole of the next deadline.
        if (wasSilent) client?.destroy();
      }
      if (event.type === 'opened' && standby) {
        spare.standBy();
        spareForTicket.standBy(client?.socket());
      }
    },
    lastFailure: () => lastFailure,
    release: () => {
      isReleased = true;
      drop();
      client?.destroy();
    },
  };
};
