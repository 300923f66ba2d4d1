import { Logger } from '@nestjs/common';
import { type MonoTypeOperatorFunction, pipe, tap } from 'rxjs';
import type { Freshness } from '../operators/freshness.js';
import { logEvents } from '../operators/log-events.js';
import type { ClusterEvent, FeedEvent } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { RelayActivity, RelayRefusal } from '../relay/index.js';
import { refusals as answers } from '../relay/refusals.js';

/** The log of a feed. The context is `TradeFeed`, followed by the name of the feed if it has one. */
export class FeedLog {
  readonly logger: Logger;

  constructor(name: string | undefined) {
    this.logger = new Logger(name === undefined ? 'TradeFeed' : `TradeFeed:${name}`);
  }

  /** Logs like `logEvents`, and in addition the stack of an exception of the application, and why the feed is closed. */
  feed(): MonoTypeOperatorFunction<FeedEvent | ClusterEvent> {
    return pipe(
      logEvents(this.logger, { level: 'info' }),
      tap({
        // The stack of a `TradeFeedError` shows this library only.
        error: (error: unknown) => {
          if (!(error instanceof TradeFeedError)) this.#exception('An exception stopped the feed', error);
        },
        complete: () => this.logger.log('Closed: the application shuts down'),
        unsubscribe: () => this.logger.log('Closed: there is no subscriber'),
      }),
    );
  }

  freshness(state: Freshness): void {
    if (state.state === 'fresh') return this.logger.log('Frames arrive again');
    const { newestAt, maxAgeMs } = state;
    const newest = newestAt === undefined ? undefined : `The newest frame is from ${new Date(newestAt).toISOString()}`;
    this.logger.warn(`${newest ?? 'No frame has arrived yet'}: older than ${Math.round(maxAgeMs)} ms`);
  }

  /** Logs what happens to a client of the relay. */
  client(event: RelayActivity): void {
    const { logger } = this;
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
        return this.#exception('A topic of `select` stopped', event.error);
      case 'client-failed':
        return this.#exception('A client received 500, relay-failed', event.error);
      case 'client-refused':
        return logger.warn(`A client was refused, ${answers[event.reason].code}: ${refusals[event.reason]}`);
    }
  }

  #exception(what: string, error: unknown): void {
    this.logger.error(`${what}: ${String(error)}`, (error as Partial<Error> | undefined)?.stack);
  }
}

const refusals: Readonly<Record<RelayRefusal, string>> = {
  full: '`relay.maxClients` is reached',
  user: '`relay.maxClientsPerUser` is reached for its user',
  closed: 'the relay is closed',
  'authorize-timeout': 'its authorization took too long',
  'session-ended': 'the session of its user has ended',
  topics: '`relay.maxTopics` is reached',
};
