// @ts-check
// Reads the feed with a `for await` loop, and writes it to a Node stream. Both
// are slow; the number of waiting frames is bounded.
//
//   node examples/for-await.mjs
import { pipeline } from 'node:stream/promises';
import { map, take } from 'rxjs';
import { toAsyncIterable, toReadable, tradeFeed$ } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

await withService(async (options) => {
  let read = 0;
  for await (const frame of toAsyncIterable({ capacity: 100 })(
    tradeFeed$('market', options),
  )) {
    await new Promise((resolve) => setTimeout(resolve, 10)); // slow work
    read += 1;
    console.log(`read ${read}: ${frame.data.length} bytes`);
    if (read === 3) break; // unsubscribes
  }

  const lines$ = tradeFeed$('market', options).pipe(
    take(3),
    map((frame) => `streamed: ${frame.text().slice(0, 40)}…\n`),
  );
  await pipeline(
    toReadable({ objectMode: false, capacity: 100 })(lines$),
    process.stdout,
    { end: false },
  );
  console.log('the stream has ended');
});
