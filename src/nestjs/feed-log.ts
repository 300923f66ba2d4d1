import { Logger } from '@nestjs/common';
import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { Freshness } from '../operators/freshness.js';
import type { FeedEvent, OwnerChanged } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { RelayActivity, RelayRefusal } from '../relay/index.js';

/** Creates the logger of a feed. The context is `TradeFeed`, followed by the name of the feed if it has one. */
export const loggerOf = (name: string | undefined): Logger =>
  new Logger(name === undefined ? 'TradeFeed' : `TradeFeed:${name}`);

/** Logs the lifecycle events of a feed. Events and `TradeFeedError`s contain no secret. Exceptions of the application are logged unchanged. */
export const logFeed = (logger: Logger): MonoTypeOperatorFunction<FeedEvent | OwnerChanged> =>
  tap({
    next: (event) => {
      if (event.type !== 'frame') logEvent(logger, event);
    },
    error: (error: unknown) => logStop(logger, error),
    complete: () => logger.log('Closed: the application shuts down'),
    unsubscribe: () => logger.log('Closed: there is no subscriber'),
  });

const logEvent = (logger: Logger, event: Exclude<FeedEvent | OwnerChanged, { readonly type: 'frame' }>): void => {
  switch (event.type) {
    case 'opened':
      return logger.log(`Connected to ${event.feed} (connection ${event.connection})`);
    case 'disconnected':
      return logger.warn(event.failure.message);
    case 'reconnecting':
      return logger.warn(`Reconnect ${event.attempt} in ${event.delayMs} ms`);
    case 'gap':
      return logger.warn(`Frames may be missing: ${event.durationMs} ms from ${isoTime(event.from)} on`);
    case 'owner-changed':
      return logger.log(`The replica ${event.owner} owns the connection (generation ${event.generation})`);
    case 'ticket-requested':
    case 'ticket-issued':
    case 'watermark':
      return undefined;
    // The error that follows is logged.
    case 'stopped':
      return undefined;
  }
};

const logStop = (logger: Logger, error: unknown): void => {
  // The stack shows where the application threw an exception. The stack of a TradeFeedError only shows this library.
  if (error instanceof TradeFeedError) logger.error(`Stopped: ${error.message}`);
  else logger.error(`Stopped: ${String(error)}`, (error as Partial<Error> | undefined)?.stack);
};

/** Logs that the newest frame is too old, and that a current frame has arrived after that. */
export const logFreshness = (logger: Logger, freshness: Freshness): void => {
  if (freshness.state === 'fresh') return logger.log('Frames arrive again');
  const { newestAt, maxAgeMs } = freshness;
  const newest = newestAt === undefined ? 'No frame has arrived yet' : `The newest frame is from ${isoTime(newestAt)}`;
  logger.warn(`${newest}: older than ${Math.round(maxAgeMs)} ms`);
};

/** Logs what happens to the clients of a relay. */
export const logClients =
  (logger: Logger) =>
  (event: RelayActivity): void => {
    switch (event.type) {
      case 'client-joined':
        return logger.debug(`Client ${event.client} joined (${event.joined})`);
      case 'client-left':
        return logger.debug(`Client ${event.client} left: ${event.sent} frames sent, ${event.missed} missed`);
      case 'client-stuck':
        return logger.warn(`Client ${event.client} does not read: its connection is closed`);
      case 'client-behind':
        return logger.warn(`Client ${event.client} reads too slowly: ${event.missed} frames missed`);
      case 'source-stopped':
        // The log of the feed reports it.
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
  full: '`relay.maxClients` is reached',
  user: '`relay.maxClientsPerUser` is reached for its user',
  closed: 'the relay is closed',
  'authorize-timeout': 'its authorization took too long',
  'session-ended': 'the session of its user has ended',
  topics: '`relay.maxTopics` is reached',
};

/** Logs that two feeds use one account. */
export const logSameAccount =
  (logger: Logger) =>
  (one: string, other: string): void =>
    logger.warn(
      `Two feeds of this process use the same account: ${other}, and ${one}. An account has one connection, so the second feed closes ` +
        'the first one for good (connection-replaced). Use one feed in both places, or a separate account for each feed',
    );

const isoTime = (at: number): string => new Date(at).toISOString();
