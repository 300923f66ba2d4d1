// @ts-check
// Builds a feed from the building blocks, with two additional operators. One
// prints each ticket. The other one closes a connection that answers pings but
// has sent no frame for a while: it errors with `connection-stalled`, and the
// policy reconnects. The local service sends only three frames on each
// connection.
//
//   node examples/own-feed.mjs
import {
  defer,
  filter,
  lastValueFrom,
  of,
  retryWhen,
  take,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import {
  backoff,
  openConnection,
  requestTicket,
  createTradeFeedError,
} from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

const quietMs = 300;

/** @param {import('rx-trade-feed').TradeFeedOptions} options */
const livelyFeed$ = (options) =>
  defer(() => of(/** @type {const} */ ('market'))).pipe(
    requestTicket(options),
    tap(({ feed, subprotocol }) =>
      console.log(`ticket for ${feed}, ${subprotocol}`),
    ),
    openConnection(options),
    timeout({
      first: 10_000, // the ticket, the handshake and the first frame
      each: quietMs,
      with: () =>
        throwError(() =>
          createTradeFeedError({ stage: 'stream', code: 'connection-stalled' }),
        ),
    }),
    retryWhen(
      backoff({ initialDelayMs: 50 }, ({ failure }) =>
        console.log(`${failure.code}: reconnecting`),
      ),
    ),
  );

await withService(async (options, local) => {
  local?.service.events$
    .pipe(filter((event) => event.type === 'handshake-accepted'))
    .subscribe(({ connection }) => {
      for (const n of [1, 2, 3])
        local.service.push('market', `frame ${n} of connection ${connection}`);
    });
  await lastValueFrom(
    livelyFeed$(options).pipe(
      take(7),
      tap((frame) => console.log(`  ${frame.text().slice(0, 60)}`)),
    ),
  );
}, {});
