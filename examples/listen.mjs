// @ts-check
// Shows the first five frames of a feed, and the events before them. `take(5)`
// unsubscribes, which closes the connection and ends the program.
//
//   node examples/listen.mjs
import { filter, lastValueFrom, take, tap } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

await withService(async (options) => {
  const frames$ = tradeFeedEvents$('market', options).pipe(
    tap((event) => {
      if (event.type !== 'frame') console.log(event.type);
    }),
    filter((event) => event.type === 'frame'),
    take(5),
    tap((frame) =>
      console.log(
        `frame   ${frame.data.length} bytes   ${frame.text().slice(0, 60)}…`,
      ),
    ),
  );
  await lastValueFrom(frames$);
  console.log('unsubscribed: the connection is closed');
});
