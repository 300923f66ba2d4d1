import { Logger } from '@nestjs/common';
import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { FeedEvent } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { RelayActivity, RelayRefusal } from '../relay/index.js';

/** Makes the logger of a feed: its context is `TradeFeed`, with the name of a feed that has one. */
export const loggerOf = (name: string | undefined): Logger =>
  new Logger(name === undefined ? 'TradeFeed' : `TradeFeed:${name}`);

/** Writes what happens around the frames to a log. No event and no failure holds a secret, so neither does a line. */
export const logFeed = (logger: Logger): MonoTypeOperatorFunction<FeedEvent> =>
  tap({
    next: (event) => {
      if (event.type !== 'frame') logEvent(logger, event);
    },
    error: (error: unknown) => logStop(logger, error),
    complete: () => logger.log('Closed: the application shuts down'),
    unsubscribe: () => logger.log('Closed: nobody is subscribed'),
  });

const logEvent = (logger: Logger, event: Exclude<FeedEvent, { readonly type: 'frame' }>): void => {
  switch (event.type) {
    case 'opened':
      return logger.log(`Connected to ${event.feed} (connection ${event.connection})`);
    case 'disconnected':
      return logger.warn(event.failure.message);
    case 'reconnecting':
      return logger.warn(`Reconnect ${event.attempt} in ${event.delayMs} ms`);
    case 'gap':
      return logger.warn(`Frames may be missing: ${event.durationMs} ms from ${isoTime(event.from)} on`);
    case 'ticket-requested':
    case 'ticket-issued':
    case 'watermark':
      return undefined;
    // The error follows, and is logged.
    case 'stopped':
      return undefined;
  }
};

const logStop = (logger: Logger, error: unknown): void => {
  // The stack of a failure of the feed leads into this library; that of an exception of the app's own leads to its place.
  if (error instanceof TradeFeedError) logger.error(`Stopped: ${error.message}`);
  else logger.error(`Stopped: ${String(error)}`, (error as Partial<Error> | undefined)?.stack);
};

/** Writes what happens to the clients of a relay to a log. */
export const logClients =
  (logger: Logger) =>
  (event: RelayActivity): void => {
    switch (event.type) {
      case 'client-joined':
        return logger.debug(`Client ${event.client} joined (${event.joined})`);
      case 'client-left':
        return logger.debug(`Client ${event.client} left: ${event.sent} frames sent, ${event.missed} missed`);
      case 'client-stuck':
        return logger.warn(`Client ${event.client} reads nothing: its connection is ended`);
      case 'client-behind':
        return logger.warn(`Client ${event.client} does not read as fast as frames come: ${event.missed} missed`);
      case 'source-stopped':
        // The log of the feed has it.
        return undefined;
      case 'topic-stopped':
        return logger.error(
          `A topic of \`select\` stopped: ${String(event.error)}`,
          (event.error as Partial<Error> | undefined)?.stack,
        );
      case 'client-refused':
        return logger.warn(`A client was refused: ${refusals[event.reason]}`);
    }
  };

const refusals: Readonly<Record<RelayRefusal, string>> = {
  full: 'there are as many as `relay.maxClients` allows',
  user: 'its user has as many streams as `relay.maxClientsPerUser` allows',
  closed: 'the relay is closed',
  'authorize-timeout': 'its authorization took too long',
  'session-ended': 'the session of its user ended meanwhile',
  topics: 'there are as many topics as `relay.maxTopics` allows',
};

/** Writes that two feeds use one account to a log. */
export const logSameAccount =
  (logger: Logger) =>
  (one: string, other: string): void =>
    logger.warn(
      `Two feeds of this process use the same account: ${other}, and ${one}. An account has one connection, so the later one evicts ` +
        'the other for good (connection-replaced). Use one feed in both places, or give each a key of its own account',
    );

const isoTime = (at: number): string => new Date(at).toISOString();
